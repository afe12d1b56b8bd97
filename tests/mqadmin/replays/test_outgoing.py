from __future__ import annotations

import pytest

from mqadmin.replays.outgoing import NotToBeSent, destination, lookup_key, outgoing_properties
from mqadmin.replays.states import Target

DEAD = {
    "TAGS": "paid",
    "KEYS": "order-1 k",
    "UNIQ_KEY": "U1",
    "RETRY_TOPIC": "orders",
    "ORIGIN_MESSAGE_ID": "O1",
    "DLQ_ORIGIN_TOPIC": "orders",
    "DELAY": "6",
    "REAL_TOPIC": "%RETRY%billing",
    "RECONSUME_TIME": "16",
    "TRAN_MSG": "true",
    "__FAILURE_CLASS": "ValueError",
    "__CRC32#": "1",
    "__SHARDINGKEY": "c7",
    "colour": "red",
}


def sent(target: Target = Target.GROUP, *, is_mended: bool = False, **further: str) -> dict[str, str]:
    return outgoing_properties(
        DEAD | further, target, origin_topic="orders", token="t", entry_id=7, is_mended=is_mended
    )


def test_what_the_sender_gave_is_kept_and_what_the_way_added_is_dropped() -> None:
    assert sent(Target.ORIGIN) == {
        "TAGS": "paid",
        "KEYS": "order-1 k replay-t-7",
        "UNIQ_KEY": "U1",
        "__SHARDINGKEY": "c7",
        "colour": "red",
        "__REPLAY_JOB": "t",
        "__REPLAY_ENTRY": "7",
    }


def test_a_retry_names_the_topic_that_the_listener_is_for() -> None:
    assert {name: sent()[name] for name in ("RETRY_TOPIC", "ORIGIN_MESSAGE_ID")} == {
        "RETRY_TOPIC": "orders",
        "ORIGIN_MESSAGE_ID": "O1",
    }


def test_a_second_replay_takes_the_key_of_the_first_away() -> None:
    again = sent(KEYS=f"order-1 {lookup_key('old', 3)}", __REPLAY_JOB="old", __REPLAY_ENTRY="3")
    assert again["KEYS"] == "order-1 replay-t-7"


def test_a_mended_copy_is_another_message() -> None:
    assert sent(is_mended=True)["UNIQ_KEY"] == lookup_key("t", 7)


@pytest.mark.parametrize(
    ("target", "topic"), [(Target.GROUP, "%RETRY%billing"), (Target.ORIGIN, "orders"), (Target.TOPIC, "mended")]
)
def test_a_target_names_a_topic(target: Target, topic: str) -> None:
    assert destination(target, "mended", group="billing", origin_topic="orders") == topic


@pytest.mark.parametrize("target", [Target.GROUP, Target.ORIGIN])
def test_a_message_whose_topic_is_not_known_is_refused(target: Target) -> None:
    with pytest.raises(NotToBeSent, match="not known"):
        destination(target, "", group="billing", origin_topic="")
