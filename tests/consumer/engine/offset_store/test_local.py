"""A member's own offsets on a disk that may be full, torn, or shared with members beside it."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from consumer.engine.offset_store import local
from consumer.engine.offset_store.local import LocalOffsetStore
from consumer.engine.offset_store.member_folder import claim_folder
from consumer.engine.offset_store.offset_file import FILE_NAME, OffsetsUnreadable, read_offsets
from remoting.wire.bodies.message_queue import MessageQueue

QUEUE = MessageQueue("orders", "a", 0)
OTHER = MessageQueue("orders", "a", 1)


async def test_queues_that_are_not_persisted_now_keep_what_is_stored(tmp_path: Path) -> None:
    store = LocalOffsetStore(tmp_path)
    await store.open()
    store.advance(QUEUE, 5)
    store.advance(OTHER, 6)
    await store.persist([QUEUE, OTHER])
    store.forget(OTHER)
    store.advance(QUEUE, 7)
    await store.persist([QUEUE])
    await store.close()
    assert read_offsets(tmp_path / "0") == {QUEUE: 7, OTHER: 6}


async def test_nothing_is_written_when_nothing_has_changed(tmp_path: Path) -> None:
    store = LocalOffsetStore(tmp_path)
    await store.open()
    store.advance(QUEUE, 5)
    await store.persist([QUEUE])
    file = tmp_path / "0" / FILE_NAME
    file.unlink()
    await store.persist([QUEUE])
    await store.close()
    assert not file.exists()


async def test_a_full_disk_is_said_once_and_the_next_write_has_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = LocalOffsetStore(tmp_path)
    await store.open()
    store.advance(QUEUE, 5)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched, caplog.at_level(logging.WARNING):
        patched.setattr(local, "write_offsets", full)
        assert await store.persist_and_confirm([QUEUE]) == [QUEUE]
        await store.persist([QUEUE])
    assert caplog.text.count("No space left on device") == 1
    assert await store.persist_and_confirm([QUEUE]) == []
    await store.close()
    assert read_offsets(tmp_path / "0") == {QUEUE: 5}


async def test_a_torn_file_without_backup_refuses_to_open_and_frees_the_folder(tmp_path: Path) -> None:
    (tmp_path / "0").mkdir()
    (tmp_path / "0" / FILE_NAME).write_bytes(b"{torn")
    with pytest.raises(OffsetsUnreadable):
        await LocalOffsetStore(tmp_path).open()
    claim = claim_folder(tmp_path)
    claim.close()
    assert claim.path.name == "0"


def test_members_beside_each_other_have_folders_of_their_own_and_find_them_again(tmp_path: Path) -> None:
    first, second = claim_folder(tmp_path), claim_folder(tmp_path)
    assert (first.path, second.path) == (tmp_path / "0", tmp_path / "1")
    first.close()
    again = claim_folder(tmp_path)
    assert again.path == tmp_path / "0"
    again.close()
    second.close()
