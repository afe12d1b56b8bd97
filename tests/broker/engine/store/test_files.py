"""The substitutes for what macOS lacks, tried where both exist."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from broker.engine.store.files import FileLayer, flush_drive, set_length
from tests.support.stores import bodies, draft, open_store


class MacFiles(FileLayer):
    """Calls what a FileLayer calls on macOS."""

    allocate = staticmethod(set_length)
    fdatasync = staticmethod(flush_drive)
    fsync = staticmethod(flush_drive)


@pytest.fixture
def descriptor(tmp_path: Path) -> int:
    return os.open(tmp_path / "segment", os.O_RDWR | os.O_CREAT)


def test_set_length_makes_a_file_as_long_as_posix_fallocate_does(descriptor: int) -> None:
    set_length(descriptor, 4_096, 1_000)
    assert os.fstat(descriptor).st_size == 5_096
    assert os.pread(descriptor, 10_000, 0) == bytes(5_096)


def test_set_length_keeps_what_a_longer_file_holds(descriptor: int) -> None:
    os.pwrite(descriptor, b"written", 0)
    set_length(descriptor, 0, 3)
    assert os.pread(descriptor, 100, 0) == b"written"


def test_a_store_on_the_substitutes_crosses_segments_and_comes_back_whole(tmp_path: Path) -> None:
    sent = [b"%d " % number * 100 for number in range(200)]
    store = open_store(tmp_path, files=MacFiles())
    for body in sent:
        store.append(draft(body))
    assert len(list((tmp_path / "commitlog").iterdir())) > 1
    store.close()
    reopened = open_store(tmp_path, files=MacFiles())
    assert bodies(reopened) == sent
    assert reopened.verify().is_sound
    reopened.close()
