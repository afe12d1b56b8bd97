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
# Every tenth is recalled, before any falls due; where a busy machine is slower than that, some recalls are refused.
RECALLED_EVERY = 10
FIRST_DUE_MS = 6_000
SPREAD_MS = 1_000
# Where the disk is slow to flush, the answer says so; what was written outlives the process all the same.
STORED = {ResponseCode.SUCCESS, ResponseCode.FLUSH_DISK_TIMEOUT}


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
    answers = ask_at_once(address, sends)
    answered_ms = int(time.time() * 1000)
    assert {answer.code for answer in answers} <= STORED
    # One that arrived when it was due already has none.
    handles = {
        body: handle
        for body, answer in zip(dues, answers, strict=True)
        if (handle := answer.ext_fields.get("recallHandle"))
    }
    assert all(dues[body] <= answered_ms for body in dues.keys() - handles.keys())
    recalled = [body for body in handles if int(body) % RECALLED_EVERY == 0]
    recalls = [
        Command(code=RequestCode.RECALL_MESSAGE, ext_fields={"topic": "late", "recallHandle": handles[body]})
        for body in recalled
    ]
    heard = zip(recalled, ask_at_once(address, recalls), strict=True)
    return dues | {body: -1 for body, answer in heard if answer.code in STORED}


@pytest.mark.parametrize("flush", ["sync", "async"])
def test_timers_come_once_and_never_early_and_recalled_ones_never_over_kills(tmp_path: Path, flush: str) -> None:
    dues: dict[bytes, int] = {}
    before = 0
    has_interrupted = False
    with OurBroker(tmp_path / "store", flush) as broker:
        for number in range(ROUNDS_MAX):
            if number >= ROUNDS and has_interrupted and -1 in dues.values():
                break
            dues |= send_round(broker.broker, number)
            rest = sum(due_ms >= 0 for due_ms in dues.values())
            count = wait_until(lambda before=before: (found := message_count(broker.broker, "late")) > before and found)
            has_interrupted = has_interrupted or count < rest
            broker.kill()
            broker.start()
            wait_until(lambda rest=rest: message_count(broker.broker, "late") >= rest, what="the rest of this round")
            before = rest
        time.sleep(0.5)
        messages = all_messages(broker.broker, "late")

    assert sorted(int(message.body) for message in messages) == sorted(
        int(body) for body, due_ms in dues.items() if due_ms >= 0
    )
    assert min(message.store_timestamp_ms - dues[message.body] for message in messages) >= 0
    assert min(dues.values()) == -1, "none was recalled"
    assert has_interrupted, "no kill fell into a delivery"
