from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from consumer.engine.offset_store import offset_file
from consumer.engine.offset_store.offset_file import FILE_NAME, OffsetsUnreadable, read_offsets, write_offsets
from remoting.wire.bodies.message_queue import MessageQueue

QUEUE = MessageQueue("orders", "a", 0)
BACKUP = f"{FILE_NAME}.bak"


class Crash(BaseException):
    pass


def test_what_is_written_is_read(tmp_path: Path) -> None:
    offsets = {MessageQueue("orders", "a", queue_id): 10**queue_id for queue_id in range(8)}
    write_offsets(tmp_path, offsets)
    assert read_offsets(tmp_path) == offsets


def test_a_new_folder_has_no_offsets(tmp_path: Path) -> None:
    assert read_offsets(tmp_path) == {}


def test_the_file_before_is_the_backup(tmp_path: Path) -> None:
    write_offsets(tmp_path, {QUEUE: 1})
    write_offsets(tmp_path, {QUEUE: 2})
    (tmp_path / FILE_NAME).unlink()
    assert read_offsets(tmp_path) == {QUEUE: 1}


@pytest.mark.parametrize(
    "torn",
    [b"", b"{", b"[]", b"\xff", b'{"offsetTable":7}', b'{"offsetTable":[{"topic":"orders"}]}'],
    ids=["empty", "cut", "a list", "no text", "no table", "no offset"],
)
def test_a_torn_file_is_replaced_by_its_backup(tmp_path: Path, torn: bytes) -> None:
    write_offsets(tmp_path, {QUEUE: 1})
    write_offsets(tmp_path, {QUEUE: 2})
    (tmp_path / FILE_NAME).write_bytes(torn)
    assert read_offsets(tmp_path) == {QUEUE: 1}


@pytest.mark.parametrize("with_backup", [True, False], ids=["and its backup", "without a backup"])
def test_a_torn_file_is_refused_with_what_to_do(tmp_path: Path, with_backup: bool) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"{torn")
    if with_backup:
        (tmp_path / BACKUP).write_bytes(b"{torn, too")
    with pytest.raises(OffsetsUnreadable, match=r"offsets.json.*Repair the file, or move it away"):
        read_offsets(tmp_path)


def test_a_negative_offset_is_torn(tmp_path: Path) -> None:
    write_offsets(tmp_path, {QUEUE: -1})
    with pytest.raises(OffsetsUnreadable, match="below 0"):
        read_offsets(tmp_path)


def test_a_file_that_is_far_too_large_is_not_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_offsets(tmp_path, {QUEUE: 1})
    monkeypatch.setattr(offset_file, "FILE_BYTES_MAX", 10)
    with pytest.raises(OffsetsUnreadable, match="more than 10 bytes"):
        read_offsets(tmp_path)


@pytest.mark.parametrize("step", range(5))
def test_a_crash_at_any_step_leaves_the_old_offsets_or_the_new(
    tmp_path: Path, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The steps are fsync, replace, replace, fsync."""
    write_offsets(tmp_path, {QUEUE: 1})
    write_offsets(tmp_path, {QUEUE: 2})
    steps = 0

    def crashing(call: Any) -> Any:
        def wrapper(*arguments: Any) -> Any:
            nonlocal steps
            if steps == step:
                raise Crash
            steps += 1
            return call(*arguments)

        return wrapper

    with monkeypatch.context() as patched:
        for name in ("replace", "fsync"):
            patched.setattr(os, name, crashing(getattr(os, name)))
        try:
            write_offsets(tmp_path, {QUEUE: 3})
        except Crash:
            assert step < 4
    assert read_offsets(tmp_path) in ([{QUEUE: 2}, {QUEUE: 3}] if step < 4 else [{QUEUE: 3}])
    write_offsets(tmp_path, {QUEUE: 4})
    assert read_offsets(tmp_path) == {QUEUE: 4}
