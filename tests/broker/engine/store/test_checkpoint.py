from __future__ import annotations

import struct
from pathlib import Path

from broker.engine.store.checkpoint import Checkpoint, CheckpointFile
from broker.engine.store.files import FileLayer

FIRST = Checkpoint(end=100, last_timestamp_ms=5, queue_count=2, entry_total=7, key_position=(3, 4))
SECOND = Checkpoint(end=200, last_timestamp_ms=6, is_clean=True)


def written(path: Path, *checkpoints: Checkpoint) -> CheckpointFile:
    file = CheckpointFile(path, FileLayer())
    for checkpoint in checkpoints:
        file.write(checkpoint)
    return file


def test_the_newest_checkpoint_is_read(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    assert CheckpointFile(path, FileLayer()).read() is None
    written(path, FIRST)
    assert CheckpointFile(path, FileLayer()).read() == FIRST
    written(path, SECOND, FIRST, SECOND)
    again = CheckpointFile(path, FileLayer())
    assert again.read() == SECOND
    again.write(FIRST)
    assert CheckpointFile(path, FileLayer()).read() == FIRST


def test_a_torn_checkpoint_leaves_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    written(path, FIRST, SECOND)
    content = bytearray(path.read_bytes())
    content[512 + 30] ^= 1  # the second of two lies first
    path.write_bytes(content)
    assert CheckpointFile(path, FileLayer()).read() == FIRST
    path.write_bytes(b"")
    assert CheckpointFile(path, FileLayer()).read() is None


def test_rocketmq_finds_its_times_and_offsets(tmp_path: Path) -> None:
    written(tmp_path / "checkpoint", SECOND)
    content = (tmp_path / "checkpoint").read_bytes()
    assert len(content) == 4096
    assert struct.unpack(">qqqqq", content[:40]) == (6, 6, 6, 200, 200)
