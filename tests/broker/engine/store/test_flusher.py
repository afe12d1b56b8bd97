"""Group commit, and its failures."""

from __future__ import annotations

import asyncio
import errno
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from broker.engine.store.checkpoint import CheckpointFile
from broker.engine.store.errors import StoreClosed, StoreFailed
from broker.engine.store.message_store import MessageStore
from broker.engine.store.values import Appended
from tests.support.faulty_files import FaultyFiles
from tests.support.stores import SMALL, abandon, bodies, draft, open_store
from tests.support.waiting import eventually

SYNC = replace(SMALL, flush="sync", flush_interval_ms=60_000)


class HeldFiles(FaultyFiles):
    """A disk whose flush takes until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.gate.set()

    def fdatasync(self, descriptor: int) -> None:  # type: ignore[override]
        self.gate.wait(60)
        super().fdatasync(descriptor)


class SlowFiles(FaultyFiles):
    """A disk on which flushing a queue file takes `pause_s`."""

    pause_s = 0.0

    def sync_path(self, path: Path) -> None:
        time.sleep(self.pause_s)
        super().sync_path(path)


def flushed(store: MessageStore, appended: Appended) -> asyncio.Future[None]:
    waiter = asyncio.get_running_loop().create_future()

    def done(error: Exception | None) -> None:
        waiter.set_exception(error) if error else waiter.set_result(None)

    store.when_flushed(appended.commit_log_offset + appended.total_bytes, done)
    return waiter


async def test_sync_waits_for_the_disk_and_releases_the_group_together(tmp_path: Path) -> None:
    files = HeldFiles()
    store = open_store(tmp_path, SYNC, files=files)
    store.append(draft())
    files.gate.clear()
    waiters = [flushed(store, store.append(draft())) for _ in range(50)]
    await asyncio.sleep(0)
    assert not any(waiter.done() for waiter in waiters)
    before = files.sync_count
    files.gate.set()
    await asyncio.wait_for(asyncio.gather(*waiters), 60)
    assert files.sync_count - before <= 4
    assert store.flushed_commit_log_offset == store.max_commit_log_offset
    store.close()


async def test_sync_answers_at_once_what_is_flushed_already(tmp_path: Path) -> None:
    store = open_store(tmp_path, SYNC)
    appended = store.append(draft())
    await asyncio.wait_for(flushed(store, appended), 60)
    assert flushed(store, appended).done()
    store.close()


async def test_sync_flushes_a_closed_segment_too(tmp_path: Path) -> None:
    store = open_store(tmp_path, SYNC)
    for _ in range(5):
        await asyncio.wait_for(flushed(store, store.append(draft(bytes(9000)))), 60)
    assert len(store._log._unsynced) == 1
    store.close()


async def test_async_does_not_wait(tmp_path: Path) -> None:
    files = HeldFiles()
    store = open_store(tmp_path, replace(SMALL, flush_interval_ms=60_000), files=files)
    store.append(draft())
    files.gate.clear()
    assert flushed(store, store.append(draft())).done()
    files.gate.set()
    store.close()


async def test_async_flushes_in_the_background(tmp_path: Path) -> None:
    store = open_store(tmp_path, replace(SMALL, flush_interval_ms=10))
    store.append(draft())
    await eventually(lambda: store.flushed_commit_log_offset == store.max_commit_log_offset)
    store.close()


async def test_a_failed_flush_is_told_to_all_and_stops_the_store(tmp_path: Path) -> None:
    files = HeldFiles()
    store = open_store(tmp_path, SYNC, files=files)
    await asyncio.wait_for(flushed(store, store.append(draft(b"safe"))), 60)
    files.gate.clear()
    files.sync_error = errno.EIO
    waiters = [flushed(store, store.append(draft(b"lost?"))) for _ in range(3)]
    files.gate.set()
    for waiter in waiters:
        with pytest.raises(StoreFailed, match="restart the broker"):
            await asyncio.wait_for(waiter, 60)
    with pytest.raises(StoreFailed, match="flushing to the disk failed"):
        store.append(draft())
    with pytest.raises(StoreFailed):
        store.append_batch([draft()])
    assert bodies(store)[0] == b"safe"
    files.sync_error = None
    with pytest.raises(StoreFailed):
        store.append(draft())
    store.close()
    assert (tmp_path / "abort").exists()
    again = open_store(tmp_path, SYNC)
    assert not again.recovery.was_clean
    assert bodies(again)[0] == b"safe"
    again.append(draft())
    again.close()


async def test_a_flush_that_fails_in_the_background_stops_async_too(tmp_path: Path) -> None:
    files = FaultyFiles()
    store = open_store(tmp_path, replace(SMALL, flush_interval_ms=10), files=files)
    store.append(draft())
    files.sync_error = errno.EIO

    def is_refused() -> bool:
        try:
            store.append(draft())
        except StoreFailed:
            return True
        return False

    await eventually(is_refused)
    assert is_refused()
    store.close()


async def test_who_waits_at_the_close_is_told(tmp_path: Path) -> None:
    files = HeldFiles()
    store = open_store(tmp_path, SYNC, files=files)
    first = flushed(store, store.append(draft()))
    await asyncio.wait_for(first, 60)
    store._flusher._is_asleep = False  # the next wake-up is lost, as if the thread were busy until the stop
    waiter = flushed(store, store.append(draft()))
    store.close()
    with pytest.raises(StoreClosed):
        await waiter


async def test_senders_do_not_wait_for_a_long_checkpoint(tmp_path: Path) -> None:
    """Forty queue files to flush, each taking its time; an append meanwhile is answered between two of them."""
    files = SlowFiles()
    store = open_store(tmp_path, replace(SYNC, checkpoint_bytes=4000), files=files)
    for queue_id in range(40):
        store.append(draft(queue_id=queue_id))
    await eventually(lambda: not store._flusher.has_plan)
    files.pause_s = 0.02
    for queue_id in range(40):
        store.append(draft(queue_id=queue_id))
    await eventually(lambda: store._flusher.has_plan)
    await asyncio.wait_for(flushed(store, store.append(draft())), 60)
    assert store._flusher.has_plan
    files.pause_s = 0
    store.close()


async def test_after_the_close_nobody_waits(tmp_path: Path) -> None:
    store = open_store(tmp_path, SYNC)
    appended = store.append(draft())
    store.close()
    heard: list[Exception | None] = []
    store.when_flushed(appended.commit_log_offset + appended.total_bytes + 1, heard.append)
    assert isinstance(heard[0], StoreClosed)


async def test_a_checkpoint_follows_the_appends(tmp_path: Path) -> None:
    config = replace(SMALL, checkpoint_bytes=20_000, flush_interval_ms=10)
    store = open_store(tmp_path, config)
    for number in range(300):
        store.append(draft(b"%d" % number, queue_id=number % 3, keys=f"k{number}"))
        if number % 50 == 49:
            await eventually(lambda: not store._flusher.has_plan)
    store.append(draft(b"last"))
    await eventually(lambda: not store._flusher.has_plan)
    abandon(store)
    again = open_store(tmp_path)
    assert 0 < again.recovery.record_count < 200
    assert again.recovery.verified_from > 0
    assert again.recovery.rebuilt_indexes is None
    assert sum(len(bodies(again, queue_id=queue_id)) for queue_id in range(3)) == 301
    assert len(again.query_by_key("orders", "k0", 9, 0, 1 << 60)) == 1
    assert len(again.query_by_key("orders", "k299", 9, 0, 1 << 60)) == 1
    assert again.verify().is_sound
    again.close()


async def test_a_checkpoint_never_reaches_beyond_what_is_flushed(tmp_path: Path) -> None:
    """One that is handed over while the log is being synced covers appends that this sync does not."""
    files = HeldFiles()
    store = open_store(tmp_path, replace(SYNC, checkpoint_bytes=300), files=files)
    store.append(draft())  # the first append brings a checkpoint
    await eventually(lambda: not store._flusher.has_plan)
    files.gate.clear()
    seen: list[tuple[int, int]] = []
    write = store._checkpoint_file.write

    def written(checkpoint) -> None:
        seen.append((checkpoint.end, store.flushed_commit_log_offset))
        write(checkpoint)

    store._checkpoint_file.write = written  # type: ignore[method-assign]
    waiter = flushed(store, store.append(draft(b"syncs now")))
    await eventually(lambda: not store._flusher._is_asleep)
    store.append(draft(bytes(300)))
    assert store._flusher.has_plan
    files.gate.set()
    await asyncio.wait_for(waiter, 60)
    await eventually(lambda: not store._flusher.has_plan)
    store.close()
    assert seen
    assert all(end <= safe for end, safe in seen), seen


async def test_a_checkpoint_waits_while_no_file_can_be_opened(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class ShortOfDescriptors(FaultyFiles):
        is_short = False

        def sync_path(self, path: Path) -> None:
            if self.is_short:
                raise OSError(errno.EMFILE, "Too many open files")
            super().sync_path(path)

    files = ShortOfDescriptors()
    store = open_store(tmp_path, replace(SYNC, flush_interval_ms=20, checkpoint_bytes=1), files=files)
    store.append(draft())  # makes the segment
    await eventually(lambda: not store._flusher.has_plan)
    files.is_short = True
    await asyncio.wait_for(flushed(store, store.append(draft(b"one"))), 60)
    await eventually(lambda: "are put off" in caplog.text)
    await asyncio.wait_for(flushed(store, store.append(draft(b"two"))), 60)
    assert store._flusher.has_plan
    files.is_short = False
    await eventually(lambda: not store._flusher.has_plan)
    checkpoint = CheckpointFile(tmp_path / "checkpoint", files).read()
    assert checkpoint is not None
    assert checkpoint.end > 0
    store.close()


async def test_a_waiter_that_fails_does_not_keep_the_others_waiting(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = HeldFiles()
    store = open_store(tmp_path, SYNC, files=files)
    store.append(draft())  # makes the segment, which flushes
    files.gate.clear()
    appended = store.append(draft())

    def fails(error: Exception | None) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    store.when_flushed(appended.commit_log_offset + appended.total_bytes, fails)
    waiter = flushed(store, appended)
    files.gate.set()
    await asyncio.wait_for(waiter, 60)
    assert "a callback for the flush" in caplog.text
    store.close()


async def test_what_a_handed_over_checkpoint_names_is_flushed_at_the_close(tmp_path: Path) -> None:
    class NotedFiles(HeldFiles):
        def __init__(self) -> None:
            super().__init__()
            self.paths: list[Path] = []

        def sync_path(self, path: Path) -> None:
            self.paths.append(path)
            super().sync_path(path)

    files = NotedFiles()
    store = open_store(tmp_path, replace(SYNC, checkpoint_bytes=1), files=files)
    store._flusher.stop()
    store.append(draft())
    assert store._flusher.has_plan
    files.paths.clear()
    store._flusher._thread = threading.Thread(target=lambda: None)
    store._flusher._thread.start()
    store.close()
    assert tmp_path / "consumequeue" / "orders" / "0" / "00000000000000000000" in files.paths


async def test_whatever_ends_the_flusher_stops_the_store(tmp_path: Path) -> None:
    class Broken(FaultyFiles):
        is_broken = False

        def fdatasync(self, descriptor: int) -> None:  # type: ignore[override]
            if self.is_broken:
                raise ValueError("a mistake of ours")
            super().fdatasync(descriptor)

    files = Broken()
    store = open_store(tmp_path, SYNC, files=files)
    await asyncio.wait_for(flushed(store, store.append(draft())), 60)
    files.is_broken = True
    with pytest.raises(StoreFailed, match="a mistake of ours"):
        await asyncio.wait_for(flushed(store, store.append(draft())), 60)
    abandon(store)
