"""The set of delivered timers and its file."""

from __future__ import annotations

import random

import pytest

from broker.engine.schedule import timer_progress
from broker.engine.schedule.timer_progress import Delivered, TimerProgress, TimerProgressFile


@pytest.mark.parametrize("seed", range(40))
def test_delivered_is_a_set_that_can_be_cut_saved_and_counted(seed, monkeypatch):
    monkeypatch.setattr(timer_progress, "TRIM_BYTES", 2)
    chance = random.Random(seed)
    delivered = Delivered(chance.randrange(20))
    model = set(range(delivered.lowest))
    end = delivered.lowest + 1 + chance.randrange(120)
    for _ in range(chance.randrange(200)):
        offset = chance.randrange(end)
        assert delivered.add(offset) == (offset not in model)
        model.add(offset)
    low = chance.randrange(end + 1)
    high = chance.randrange(low, end + 1)
    within = {offset for offset in model if offset < high} | set(range(low))

    for found, wanted in (
        (delivered, model),
        (Delivered(delivered.lowest, delivered.as_bits()), model),
        (delivered.within(low, high), within),
    ):
        assert [offset in found for offset in range(end + 9)] == [offset in wanted for offset in range(end + 9)]
        assert found.missing(0, end) == sum(offset not in wanted for offset in range(end))
        assert found.missing(low, high) == sum(offset not in wanted for offset in range(low, high))
        assert found.lowest == min(set(range(end + 10)) - wanted)


def test_file_gives_back_what_was_written_and_nothing_that_has_a_wrong_bit(tmp_path):
    file = TimerProgressFile(tmp_path / "timer")
    assert file.read() is None
    file.write(TimerProgress(17, 12_345, b"\x05\x80"))
    assert file.read() == TimerProgress(17, 12_345, b"\x05\x80")

    path = tmp_path / "timer" / "progress"
    sound = path.read_bytes()
    for byte in range(len(sound)):
        path.write_bytes(sound[:byte] + bytes([sound[byte] ^ 1]) + sound[byte + 1 :])
        assert file.read() is None, byte
    path.write_bytes(sound[:-1])
    assert file.read() is None
    path.write_bytes(b"")
    assert file.read() is None
