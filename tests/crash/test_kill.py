"""kill -9 of a writer under load, again and again, on one store.

Must survive, in both flush modes: every acknowledged message, at its queue offset. May vanish: what was tried and not
acknowledged. Must never appear: a message that was not tried, one twice, or one out of order.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from broker.engine.store.message_store import MessageStore
from broker.engine.store.values import StoreConfig
from tests.crash.store_writer import QUEUE_COUNT, body_of
from tests.support.stores import read_queue

# Each round reads all that the rounds before have left.
pytestmark = [pytest.mark.crash, pytest.mark.timeout(1800)]

ROUNDS = 20 if os.environ.get("TORTURE") else 3


def run_and_kill(folder: Path, flush: str, first: int, seconds: float) -> tuple[set[int], int]:
    """(acknowledged numbers, one past the last that was tried) of a writer killed after `seconds` of writing.

    Not before it has acknowledged one: a busy machine may be slower than that.
    """
    writer = subprocess.Popen(
        [sys.executable, "-m", "tests.crash.store_writer", str(folder), flush, str(first)], stdout=subprocess.PIPE
    )
    assert writer.stdout is not None
    said = os.read(writer.stdout.fileno(), 1 << 16)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline or b"\nA" not in said:
        more = os.read(writer.stdout.fileno(), 1 << 16)
        assert more, "the writer ended by itself"
        said += more
    writer.kill()
    with writer.stdout:
        said += writer.stdout.read()
    assert writer.wait(60) == -9
    lines = said.split(b"\n")[:-1]
    acknowledged = {int(line[1:]) for line in lines if line.startswith(b"A")}
    return acknowledged, max(int(line[1:]) for line in lines if line.startswith(b"T"))


@pytest.mark.parametrize("flush", ["sync", "async"])
def test_no_acknowledged_message_is_lost_and_none_invented(tmp_path: Path, flush: str) -> None:
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    chance = random.Random(seed)
    acknowledged: set[int] = set()
    tried = 0
    for _ in range(ROUNDS):
        fresh, tried = run_and_kill(tmp_path, flush, tried, chance.uniform(0.1, 0.5))
        assert fresh
        acknowledged |= fresh
        check(tmp_path, acknowledged, tried)


def check(folder: Path, acknowledged: set[int], tried: int) -> None:
    store = MessageStore.open(folder, StoreConfig())
    assert store.recovery.damages == ()
    assert store.recovery.rebuilt_indexes is None
    found: list[int] = []
    for queue_id in range(QUEUE_COUNT):
        messages = read_queue(store, "orders", queue_id)
        assert [message.queue_offset for message in messages] == list(range(len(messages)))
        numbers = [int(message.body.partition(b":")[0]) for message in messages]
        assert numbers == sorted(set(numbers))
        assert all(message.body == body_of(number) for message, number in zip(messages, numbers, strict=True))
        found += numbers
    assert acknowledged <= set(found)
    assert all(number < tried for number in found)
    newest = max(found)
    assert len(store.query_by_key("orders", f"k{newest}", 9, 0, 1 << 62)) == 1
    assert store.verify().is_sound
    store.close()
