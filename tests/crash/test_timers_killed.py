"""The broker killed in the midst of delivering timers: every one comes once and never early, a recalled one never."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.properties import encode_properties
from tests.support.asking import ask_at_once
from tests.support.our_broker import OurBroker
from tests.support.reading import all_messages, message_count
from tests.support.waiting import wait_until

pytestmark = pytest.mark.crash

# At least so many; more until a kill fell into a delivery, which a busy machine may miss several times.
ROUNDS = 3
ROUNDS_MAX = 10
MESSAGES_PER_ROUND = 2_000
# Every tenth is recalled: none of them may fall due before all the recalls are sent, on a busy machine either.
RECALLED_EVERY = 10
FIRST_DUE_MS = 6_000
SPREAD_MS = 1_000


def send_round(address: str, number: int) -> dict[bytes, int]:
    """The bodies, counting on over the rounds, with their due times in ms; of those that were recalled, -1."""
    values = dict(zip("abcdefgh", ("p", "late", "TBW102", "1", "0", "0", "0", "0"), strict=True))
    base_ms = int(time.time() * 1000) + FIRST_DUE_MS
    dues = {
        b"%d" % body: base_ms + body * 7 % SPREAD_MS
        for body in range(number * MESSAGES_PER_ROUND, (number + 1) * MESSAGES_PER_ROUND)
    }
    sends = [
        Command(
            code=RequestCode.SEND_MESSAGE_V2,
            ext_fields=values
            | {"i": encode_properties({"UNIQ_KEY": f"K{body.decode()}", "TIMER_DELIVER_MS": str(due_ms)})},
            body=body,
        )
        for body, due_ms in dues.items()
    ]
    recalled = [body for body in dues if int(body) % RECALLED_EVERY == 0]
    answers = ask_at_once(address, sends)
    assert {answer.code for answer in answers} == {ResponseCode.SUCCESS}
    handles = {body: answer.ext_fields["recallHandle"] for body, answer in zip(dues, answers, strict=True)}
    recalls = [
        Command(code=RequestCode.RECALL_MESSAGE, ext_fields={"topic": "late", "recallHandle": handles[body]})
        for body in recalled
    ]
    assert {answer.code for answer in ask_at_once(address, recalls)} == {ResponseCode.SUCCESS}
    return dues | dict.fromkeys(recalled, -1)


@pytest.mark.parametrize("flush", ["sync", "async"])
def test_timers_come_once_and_never_early_and_recalled_ones_never_over_kills(tmp_path: Path, flush: str) -> None:
    dues: dict[bytes, int] = {}
    per_round = MESSAGES_PER_ROUND - MESSAGES_PER_ROUND // RECALLED_EVERY
    counts_at_kills: list[int] = []
    with OurBroker(tmp_path / "store", flush) as broker:
        for number in range(ROUNDS_MAX):
            if number >= ROUNDS and any(count % per_round for count in counts_at_kills):
                break
            dues |= send_round(broker.broker, number)
            before = number * per_round
            counts_at_kills.append(
                wait_until(lambda before=before: (count := message_count(broker.broker, "late")) > before and count, 40)
            )
            broker.kill()
            broker.start()
            rest = before + per_round
            wait_until(lambda rest=rest: message_count(broker.broker, "late") >= rest, 40, "the rest of this round")
        time.sleep(0.5)
        messages = all_messages(broker.broker, "late")

    assert sorted(int(message.body) for message in messages) == sorted(
        int(body) for body, due_ms in dues.items() if due_ms >= 0
    )
    assert min(message.store_timestamp_ms - dues[message.body] for message in messages) >= 0
    assert any(count % per_round for count in counts_at_kills), "no kill fell into a delivery"
