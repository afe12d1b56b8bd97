"""The public interface of the store, RocketMQ's `DefaultMessageStore`: append, read, flush, look up, verify, close.

    commitlog/ consumequeue/ keyindex/ checkpoint abort lock store.json deleted_topics.json quarantine/

All methods run in the event loop's thread; the flusher (`flusher.py`) is the only other thread. When `append` returns,
the operating system has the record: a killed process does not lose it. A power cut may, depending on the `flush` mode.
With "sync" the caller acknowledges the message in the callback of `when_flushed`, and no acknowledged message is lost.
With "async" it acknowledges at once, and the messages of the last 500 ms (`flush_interval_ms`) may be lost.

Store timestamps never decrease within the log: if the clock goes back, messages get the last timestamp again.
"""

from __future__ import annotations

import logging
import resource
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from broker.engine.store.checkpoint import CheckpointFile
from broker.engine.store.checkpointer import Checkpointer
from broker.engine.store.commit_log import CommitLog
from broker.engine.store.disk_failure import DiskFailure
from broker.engine.store.errors import StoreClosed, StoreError, StoreFull
from broker.engine.store.files import NO_SPACE_ERRNOS, SHORTAGE_REMEDIES, FileLayer
from broker.engine.store.flusher import CheckpointPlan, FlushCallback, Flusher, sync_files
from broker.engine.store.indexer import Indexer
from broker.engine.store.key_index import KeyIndex
from broker.engine.store.key_lookup import KeyLookup
from broker.engine.store.layout import RecordFields
from broker.engine.store.log_scan import scan_log
from broker.engine.store.mapped_files import MappedFiles
from broker.engine.store.prepared import Prepared, pack, prepare
from broker.engine.store.queue_table import QueueTable
from broker.engine.store.reader import Matches, Reader
from broker.engine.store.record_window import PropertiesMatch
from broker.engine.store.recovery import Recovery
from broker.engine.store.retention import Pin, Retention, read_retention
from broker.engine.store.store_folder import StoreFolder, StoreSizes
from broker.engine.store.values import (
    Appended,
    Boundary,
    MessageDraft,
    ReadResult,
    RecoveryReport,
    StoreConfig,
    VerifyReport,
)
from broker.engine.store.verify import verify_store
from remoting.complaints import ComplaintLog
from remoting.wire.stored_message import StoredMessage, decode_message

logger = logging.getLogger(__name__)

Clock = Callable[[], int]
OnAppended = Callable[[list[Appended]], None]

# Each mapped file keeps a descriptor, and a store may have more queues than the process may have descriptors.
_MAPPED_FILES_MAX = 4096


def system_clock() -> int:
    """Returns the time in ms since the epoch."""
    return time.time_ns() // 1_000_000


class MessageStore:
    """A message store: commit log, consume queues, key index (RocketMQ's `DefaultMessageStore`).

    `recovery` reports what opening the store found. `retention` removes the oldest segments, but none that is pinned
    (`add_pins`).

    `full_because` is set by the disk watch: the reason for which messages of clients are refused, None while they are
    accepted. The store does not enforce it and appends while it has space: deliveries of delayed and timer messages
    must go on, because without them their segments could never be removed.
    """

    def __init__(
        self,
        folder: StoreFolder,
        sizes: StoreSizes,
        config: StoreConfig,
        clock: Clock,
        files: FileLayer,
        complaints: ComplaintLog,
    ):
        """Recovers the store in `folder`, which is locked already. Call `open` instead."""
        path = folder.path
        self.path = path
        self.config = config
        self._append_listeners: list[OnAppended] = []
        self.full_because: str | None = None
        self._folder = folder
        self._clock = clock
        self._files = files
        self._is_closed = False
        self._disk_failure = DiskFailure(path)
        self._mapped = MappedFiles(files, _mapped_files_max())
        retained = read_retention(path, files)
        self._log = CommitLog(path / "commitlog", sizes.segment_bytes, files, self._disk_failure)
        self._log.drop_below(retained.log_min_offset)
        self._queues = QueueTable(path, sizes.queue_file_entries, self._mapped, files, retained)
        self._keys = KeyIndex(path / "keyindex", self._mapped)
        self._indexer = Indexer(self._queues, self._keys, config.delay_levels_at)
        self._reader = Reader(self._log, self._queues, complaints)
        self._lookup = KeyLookup(self._keys, self._queues, self._reader)
        self._checkpoint_file = CheckpointFile(path / "checkpoint", files)
        self._checkpointer = Checkpointer(
            *(self._log, self._queues, self._keys),
            every_bytes=config.checkpoint_bytes,
            every_ms=config.checkpoint_interval_ms,
        )
        self.recovery, self._last_timestamp_ms, first_plan = self._recover()
        self._flusher = Flusher(
            self._log,
            self._checkpoint_file,
            files,
            self._disk_failure,
            is_sync=config.flush == "sync",
            interval_ms=config.flush_interval_ms,
        )
        if first_plan is not None:
            self._flusher.checkpointed = self.recovery.verified_from
            self._flusher.write_checkpoint(first_plan)
        self.retention = Retention(
            *(path, self._log, self._queues, self._keys, files),
            flushed=lambda: self._flusher.flushed,
            is_checkpointed=self._is_checkpointed,
            complaints=complaints,
        )

    @classmethod
    def open(
        cls,
        path: Path,
        config: StoreConfig | None = None,
        clock: Clock = system_clock,
        files: FileLayer | None = None,
        complaints: ComplaintLog | None = None,
    ) -> MessageStore:
        """Opens and recovers the store in `path`, or creates it. `clock` returns ms since the epoch.

        Raises StoreError, whose text names the remedy.
        """
        config = config or StoreConfig()
        files = files or FileLayer()
        folder = StoreFolder(path, files)
        sizes = folder.open(StoreSizes(config.segment_bytes, config.queue_file_entries))
        try:
            return cls(folder, sizes, config, clock, files, complaints or ComplaintLog())
        except OSError as error:
            folder.release()
            if error.errno in NO_SPACE_ERRNOS:
                raise StoreFull(f"no space to open the store {path} ({error.strerror}); free space") from error
            raise StoreError(f"the store {path} cannot be opened: {error}") from error
        except BaseException:
            folder.release()
            raise

    def _recover(self) -> tuple[RecoveryReport, int, CheckpointPlan | None]:
        """Returns the report, the last store timestamp, and the first checkpoint unless it was written here."""
        was_aborted = self._folder.was_aborted
        self._folder.mark_open()
        recovery = Recovery(self.path, self._log, self._queues, self._keys, self._indexer, self._files)
        report, last_timestamp_ms = recovery.run(self._checkpoint_file.read(), was_aborted=was_aborted)
        self._log.sync()
        plan = self._checkpointer.plan(self._log.end, last_timestamp_ms)
        if report.rebuilt_indexes is None:
            # The old checkpoint stays valid, so the flusher may write the new one: flushing thousands of queues takes a
            # while, and the start need not wait for it.
            return report, last_timestamp_ms, plan
        sync_files(plan.changed_files, self._files, lambda: True)
        self._checkpoint_file.write(plan.checkpoint)
        return report, last_timestamp_ms, None

    def close(self) -> None:
        """Flushes the log and the indexes, writes a clean checkpoint and releases the folder.

        Writes no checkpoint for a store that has failed, or when flushing the indexes takes longer than
        `close_flush_max_s`, as with tens of thousands of queues that have just grown: the next start then verifies the
        log from the last checkpoint on, as after a kill. Raises StoreFailed when a flush fails.
        """
        if self._is_closed:
            return
        self._is_closed = True
        unwritten = self._flusher.stop()
        try:
            if self._disk_failure.error is None:
                self._log.sync()
                if self._flush_indexes(unwritten.changed_files if unwritten is not None else ()):
                    self._folder.mark_closed()
                else:
                    logger.warning(
                        "store %s: not all changed queues were flushed in time; the next start verifies the log",
                        self.path,
                    )
        except OSError as error:
            raise self._disk_failure.record("flushing at the close", error) from error
        finally:
            self._log.close()
            self._mapped.close_all()
            self._folder.release()

    def _flush_indexes(self, unwritten: Iterable[Path]) -> bool:
        """Flushes `unwritten` and the files changed since, then writes a clean checkpoint; False if time runs out."""
        ends_s = time.monotonic() + self.config.close_flush_max_s

        def has_time() -> bool:
            return time.monotonic() < ends_s

        plan = self._checkpointer.plan(self._log.end, self._last_timestamp_ms, is_clean=True)
        paths = dict.fromkeys([*unwritten, *plan.changed_files])
        # Files first: after a power cut, sums of entries that are not on the disk would be wrong.
        if not (sync_files(paths, self._files, has_time) and self._queues.write_sums(has_time)):
            return False
        self._checkpoint_file.write(plan.checkpoint)
        return True

    # --- appending

    def append(self, draft: MessageDraft) -> Appended:
        """Stores one message.

        Raises StoreFull or RecordRefused (nothing was stored then), StoreFailed, StoreClosed.
        """
        return self._append((prepare(self._queues, draft),))[0]

    def append_batch(self, drafts: Sequence[MessageDraft]) -> list[Appended]:
        """Stores all messages or none, one behind the other in the log, with one write. Raises as `append` does."""
        return self._append([prepare(self._queues, draft) for draft in drafts]) if drafts else []

    def _append(self, batch: Sequence[Prepared]) -> list[Appended]:
        if self._is_closed:
            raise StoreClosed(f"the store {self.path} was closed")
        self._disk_failure.check()
        start = self._log.reserve(sum([prepared.total_bytes for prepared in batch]))
        self._reserve_indexes(batch, start)
        now_ms = max(self._clock(), self._last_timestamp_ms)
        appended, records = pack(batch, start, now_ms)
        self._log.write(start, records[0] if len(records) == 1 else b"".join(records))
        self._last_timestamp_ms = now_ms
        try:
            self._index(batch, appended)
        except Exception as error:
            # The records are in the log with their queue offsets; later messages would get the same offsets again.
            raise self._disk_failure.record("indexing what was written", error) from error
        self._checkpoint_if_due()
        for listener in self._append_listeners:
            listener(appended)
        return appended

    def _reserve_indexes(self, batch: Sequence[Prepared], start: int) -> None:
        """Allocates the space of all index entries, before the records are written: afterwards nothing may fail.

        Raises StoreFull, StoreFailed, RecordRefused.
        """
        try:
            key_count = 0
            for prepared in batch:
                # For the whole batch: more than needed if its messages are in several queues.
                prepared.queue.reserve(len(batch))
                key_count += len(prepared.keys)
            if key_count:
                self._keys.reserve(key_count, start)
        except OSError as error:
            remedy = SHORTAGE_REMEDIES.get(error.errno or 0)
            if remedy is not None:
                raise StoreFull(f"no space for the indexes of {self.path} ({error.strerror}); {remedy}") from error
            raise self._disk_failure.record("growing an index", error) from error

    def _index(self, batch: Sequence[Prepared], appended: list[Appended]) -> None:
        """Enters the records into their consume queues and the key index."""
        for prepared, one in zip(batch, appended, strict=True):
            queue = prepared.queue
            if prepared.has_entry:
                self._checkpointer.will_grow(queue)
                queue.put(one.commit_log_offset, one.total_bytes, one.tags_code)
            if prepared.keys:
                self._keys.put(queue.topic_crc, prepared.keys, one.commit_log_offset, one.store_timestamp_ms)

    def _checkpoint_if_due(self) -> None:
        end, now_ms = self._log.end, self._last_timestamp_ms
        if self._checkpointer.is_due(end, now_ms) and not self._flusher.has_plan:
            self._flusher.write_checkpoint(self._checkpointer.plan(end, now_ms))

    def _is_checkpointed(self, commit_log_offset: int) -> bool:
        """Tells whether the last checkpoint is at or behind the offset; requests a checkpoint if not."""
        if self._flusher.checkpointed < commit_log_offset and not self._flusher.has_plan:
            self._flusher.write_checkpoint(self._checkpointer.plan(self._log.end, self._last_timestamp_ms))
        return self._flusher.checkpointed >= commit_log_offset

    def when_flushed(self, commit_log_offset_end: int, callback: FlushCallback) -> None:
        """Calls `callback(None)` on the loop once messages that end at or before the offset may be acknowledged.

        With "sync" that is after their flush, with "async" at once. Calls it with StoreFailed or StoreClosed when the
        flush cannot happen any more.
        """
        self._flusher.when_flushed(commit_log_offset_end, callback)

    # --- reading

    @property
    def max_commit_log_offset(self) -> int:
        """Returns the commit-log offset of the next record."""
        return self._log.end

    @property
    def min_commit_log_offset(self) -> int:
        """Returns the commit-log offset at which the log begins, after what retention removed."""
        return self._log.min_offset

    @property
    def earliest_timestamp_ms(self) -> int:
        """Returns the store timestamp of the oldest message in the log, -1 if the log is empty."""
        return self._reader.timestamp_at(self._log.min_offset)

    @property
    def flushed_commit_log_offset(self) -> int:
        """Returns the end up to which the log is on the disk."""
        return self._flusher.flushed

    def read(
        self,
        topic: str,
        queue_id: int,
        queue_offset: int,
        max_messages: int,
        max_bytes: int,
        matches: Matches | None = None,
        properties_match: PropertiesMatch | None = None,
    ) -> ReadResult:
        """Returns the messages from `queue_offset` on whose tags code and properties match (all, if None).

        `reader.py` has the rules.
        """
        return self._reader.read(
            topic,
            queue_id,
            queue_offset,
            max_messages=max_messages,
            max_bytes=max_bytes,
            matches=matches,
            properties_match=properties_match,
        )

    def properties_of(self, appended: Appended) -> bytes | None:
        """Returns the properties of a stored message, encoded as in `property_lookup.py`; None if the log lacks it.

        Raises OSError.
        """
        return self._reader.properties_at(appended.commit_log_offset, appended.total_bytes)

    def min_offset(self, topic: str, queue_id: int) -> int:
        """Returns the first queue offset that can be read; 0 for an unknown queue."""
        queue = self._queues.get(topic, queue_id)
        return queue.min_offset(self._log.min_offset) if queue is not None else 0

    def max_offset(self, topic: str, queue_id: int) -> int:
        """Returns the queue offset of the next message; 0 for an unknown queue."""
        queue = self._queues.get(topic, queue_id)
        return queue.max_offset if queue is not None else 0

    def offset_by_time(self, topic: str, queue_id: int, timestamp_ms: int, boundary: Boundary = Boundary.LOWER) -> int:
        """Returns the queue offset for a store timestamp (see `Reader.offset_by_time`); 0 for an unknown queue."""
        queue = self._queues.get(topic, queue_id)
        return self._reader.offset_by_time(queue, timestamp_ms, boundary) if queue is not None else 0

    def queue_entry(self, topic: str, queue_id: int, queue_offset: int) -> tuple[int, int, int] | None:
        """Returns (commit-log offset, record size, tags code) of the message, None when there is none."""
        queue = self._queues.get(topic, queue_id)
        return queue.entry(queue_offset) if queue is not None else None

    def store_timestamp_at(self, topic: str, queue_id: int, queue_offset: int) -> int:
        """Returns the store timestamp of the message in ms, -1 when there is none."""
        entry = self.queue_entry(topic, queue_id, queue_offset)
        return self._reader.timestamp_at(entry[0]) if entry is not None else -1

    def record_at(self, commit_log_offset: int) -> bytes | None:
        """Returns the bytes of the stored message that starts at the offset, None when none starts there."""
        return self._reader.record_at(commit_log_offset)

    def message_at(self, commit_log_offset: int) -> StoredMessage | None:
        """Returns the message that starts at the offset, decoded; None when none starts there."""
        record = self._reader.record_at(commit_log_offset)
        return decode_message(record) if record is not None else None

    def queued_message_at(self, commit_log_offset: int) -> StoredMessage | None:
        """Returns the message that starts at the offset, decoded; None if no queue entry points to it.

        A client may send a message whose body contains a complete record with a correct CRC and offset; no queue entry
        points to such a record.
        """
        message = self.message_at(commit_log_offset)
        if message is None:
            return None
        entry = self.queue_entry(message.topic, message.queue_id, message.queue_offset)
        return message if entry is not None and entry[0] == commit_log_offset else None

    def records_from(self, commit_log_offset: int) -> Iterator[RecordFields]:
        """Yields the fields of all messages from the offset of a record to the end of the log, in order.

        No message may be appended meanwhile.
        """
        for found in scan_log(self._log, max(commit_log_offset, self._log.min_offset)):
            if isinstance(found, RecordFields):
                yield found

    def query_by_key(
        self, topic: str, key: str, max_messages: int, begin_ms: int, end_ms: int, *, with_deleted: bool = False
    ) -> list[bytes]:
        """Returns the records that have `key` as unique key or among their keys, newest first.

        At most 64 records, and half a frame in bytes. `with_deleted`: those of before the topic was deleted, too.
        """
        return self._lookup.find(topic, key, max_messages, begin_ms, end_ms, with_deleted=with_deleted)

    @property
    def last_indexed(self) -> tuple[int, int]:
        """Returns (commit-log offset, store timestamp in ms) of the last message with a key; (0, 0) if none has one."""
        return self._keys.last

    def queues(self, topic: str) -> list[int]:
        """Returns the ids of those queues of `topic` that ever had a message in this store."""
        return self._queues.queue_ids(topic)

    def topics(self) -> set[str]:
        """Returns all topics that ever had a message in this store."""
        return self._queues.topics()

    # --- listeners, pins, deletion, verification

    def add_append_listeners(self, *listeners: OnAppended) -> None:
        """Adds functions that are called in this order, on the event loop, once per append with all its messages."""
        self._append_listeners += listeners

    def add_pins(self, *pins: Pin) -> None:
        """Adds functions that return the lowest commit-log offset of a message that still waits, or None.

        These are delayed, timer and half messages. Retention calls the functions before it removes a segment, and
        keeps the segment with the lowest offset and all later ones.
        """
        self.retention.pins += pins

    def delete_topic(self, topic: str) -> None:
        """Deletes all queues of `topic`; a new topic of that name starts at queue offset 0. Raises OSError."""
        self._queues.delete_topic(topic, self._log.end, self._log.min_offset)
        self._checkpointer.count_all_again()
        self._checkpoint_if_due()

    def verify(self) -> VerifyReport:
        """Checks every record and queue entry; takes seconds per GB."""
        return verify_store(self._log, self._queues, self._indexer)


def _mapped_files_max() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(64, min(_MAPPED_FILES_MAX, soft // 4))
