"""The broker killed in the midst of delivering delayed messages: every one comes, in order, and comes once."""

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
ROUNDS = 4
ROUNDS_MAX = 12
MESSAGES_PER_ROUND = 2_000
LEVEL_1_MS = 1_000
# Where the disk is slow to flush, the answer says so; what was written outlives the process all the same.
STORED = {ResponseCode.SUCCESS, ResponseCode.FLUSH_DISK_TIMEOUT}


def send_round(address: str, number: int) -> dict[bytes, float]:
    """Level 1; the bodies (counting on over the rounds) and when each was sent."""
    properties = encode_properties({"DELAY": "1"})
    values = dict(zip("abcdefgh", ("p", "late", "TBW102", "1", "0", "0", "0", "0"), strict=True)) | {"i": properties}
    sent: dict[bytes, float] = {}
    for start in range(number * MESSAGES_PER_ROUND, (number + 1) * MESSAGES_PER_ROUND, 100):
        bodies = [b"%d" % body for body in range(start, start + 100)]
        sent |= dict.fromkeys(bodies, time.time())
        requests = [Command(code=RequestCode.SEND_MESSAGE_V2, ext_fields=values, body=body) for body in bodies]
        assert {answer.code for answer in ask_at_once(address, requests)} <= STORED
    return sent


@pytest.mark.parametrize("flush", ["sync", "async"])
def test_delayed_messages_come_once_in_order_and_never_early_over_kills(tmp_path: Path, flush: str) -> None:
    sent: dict[bytes, float] = {}
    counts_at_kills: list[int] = []
    with OurBroker(tmp_path / "store", flush) as broker:
        for number in range(ROUNDS_MAX):
            if number >= ROUNDS and any(count % MESSAGES_PER_ROUND for count in counts_at_kills):
                break
            sent |= send_round(broker.broker, number)
            before = number * MESSAGES_PER_ROUND
            counts_at_kills.append(
                wait_until(lambda before=before: (count := message_count(broker.broker, "late")) > before and count)
            )
            broker.kill()
            broker.start()
            rest = len(sent)
            wait_until(lambda rest=rest: message_count(broker.broker, "late") >= rest, what="the rest of this round")
        time.sleep(0.5)
        messages = all_messages(broker.broker, "late")

    assert [int(message.body) for message in messages] == list(range(len(sent)))
    assert min(message.store_timestamp_ms - sent[message.body] * 1000 for message in messages) >= LEVEL_1_MS - 1
    assert any(count % MESSAGES_PER_ROUND for count in counts_at_kills), "no kill fell into a delivery"
