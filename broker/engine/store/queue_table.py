"""All consume queues of a store, by (topic, queue id) (RocketMQ's `ConsumeQueueStore`), and its deleted topics.

A deleted topic's records stay in the log until retention removes their segments. `deleted_topics.json` has, per topic,
the commit-log offset up to which its records are deleted, so that no recovery indexes them again; a new topic of that
name starts at queue offset 0. Event loop only.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from broker.engine.store.consume_queue import ConsumeQueue, Sum
from broker.engine.store.errors import IndexesStale, RecordRefused, StoreError
from broker.engine.store.files import FileLayer, backup_of
from broker.engine.store.mapped_files import MappedFiles
from broker.engine.store.values import RetentionState

logger = logging.getLogger(__name__)

# The limit of file systems for one name, and the largest queue id: the record has a signed 32-bit field for it.
_FOLDER_NAME_BYTES_MAX = 255
_QUEUE_ID_MAX = 0x7FFFFFFF
_DELETED_FILE = "deleted_topics.json"
_SUMS_FILE = "queue_sums.json"


class QueueTable:
    """The consume queues of a store.

    `queue_count` (queues that ever had a message) and `entry_total` (the sum of all max offsets) are kept in the
    checkpoint: a start that finds other numbers rebuilds the queues.
    """

    def __init__(
        self,
        store_folder: Path,
        entries_per_file: int,
        mapped: MappedFiles,
        files: FileLayer,
        retained: RetentionState,
    ) -> None:
        """`retained`, the state of the last removal, has the next offsets of queues whose messages were all removed."""
        self._folder = store_folder / "consumequeue"
        self._deleted_path = store_folder / _DELETED_FILE
        self._sums_path = store_folder / _SUMS_FILE
        self._entries_per_file = entries_per_file
        self._mapped = mapped
        self._files = files
        self._queues: dict[tuple[str, int], ConsumeQueue] = {}
        self._folder.mkdir(exist_ok=True)
        self._deleted = self._read_deleted()
        self._retained = retained

    def _read_deleted(self) -> dict[str, int]:
        found = self._files.read_json(self._deleted_path)
        try:
            return {str(topic): int(offset) for topic, offset in (found or {}).items()}
        except (TypeError, ValueError, AttributeError) as error:
            raise StoreError(f"{self._deleted_path} is damaged ({error}); restore it from a copy") from error

    def load(self, log_end: int | None) -> None:
        """Reads the queues from the disk and zeroes their entries of records from `log_end` on (None: all are trusted).

        Raises IndexesStale when a queue lacks entries or a file does not have its sum.
        """
        all_sums = self._read_sums()
        for topic in os.listdir(self._folder):
            sums_of_topic = all_sums.get(topic, {})
            for name in os.listdir(self._folder / topic):
                if name.isdigit():
                    sums = {int(first): (count, crc) for first, (count, crc) in sums_of_topic.get(name, {}).items()}
                    self._queue(topic, int(name)).load(log_end, sums)
        self._restore_next_offsets()

    def write_sums(self, has_time: Callable[[], bool]) -> bool:
        """Writes `queue_sums.json`, the CRC32 of each queue's files, for the next start to compare. Called at a close.

        Returns False and writes nothing when `has_time` returns False before all are computed. Raises OSError.
        """
        # Encoded at once: a million small containers would slow down each run of the garbage collector.
        sums: dict[str, dict[str, msgspec.Raw]] = {}
        for queue in self._queues.values():
            if not has_time():
                return False
            of_queue = msgspec.json.encode({str(first): one for first, one in queue.sum_up().items()})
            sums.setdefault(queue.topic, {})[str(queue.queue_id)] = msgspec.Raw(of_queue)
        self._files.replace_json(self._sums_path, sums)
        return True

    def _forget_sums(self) -> None:
        """Deletes `queue_sums.json`, because queues start again with other entries."""
        for path in (self._sums_path, backup_of(self._sums_path)):
            path.unlink(missing_ok=True)

    def _read_sums(self) -> dict[str, dict[str, dict[str, Sum]]]:
        """Reads the sums by topic, queue id and first entry of a file; returns {} when they cannot be read."""
        try:
            found = self._files.read_json(self._sums_path)
            return {} if found is None else msgspec.convert(found, dict[str, dict[str, dict[str, Sum]]])
        except (StoreError, msgspec.ValidationError) as error:
            logger.warning("consume queues are opened without comparing their CRCs: %s", error)
            return {}

    def _restore_next_offsets(self) -> None:
        """Continues the queues whose messages were all removed at their recorded next offsets.

        Raises IndexesStale when a queue's files end before its next offset.
        """
        for topic, queues in (self._retained.next_offsets or {}).items():
            if self.deleted_until(topic) and self.deleted_until(topic) >= self._retained.log_end:
                continue
            for queue_id, next_offset in queues.items():
                queue = self.get_or_create(topic, int(queue_id))
                if queue.max_offset == 0:
                    queue.continue_from(next_offset)
                elif queue.max_offset < next_offset:
                    raise IndexesStale(f"{topic}/{queue_id} lacks entries before {next_offset}")

    def clear(self) -> None:
        """Deletes all consume queues, which are then rebuilt from the log and the next offsets in `retention.json`."""
        self._queues.clear()
        self._mapped.close_all()
        self._forget_sums()
        shutil.rmtree(self._folder)
        self._folder.mkdir()
        self._restore_next_offsets()

    @property
    def queue_count(self) -> int:
        """Returns the number of queues that ever had a message."""
        return sum(1 for queue in self._queues.values() if queue.max_offset)

    @property
    def entry_total(self) -> int:
        """Returns the sum of all queues' max offsets."""
        return sum(queue.max_offset for queue in self._queues.values())

    def __iter__(self) -> Iterator[ConsumeQueue]:
        return iter(self._queues.values())

    def get(self, topic: str, queue_id: int) -> ConsumeQueue | None:
        return self._queues.get((topic, queue_id))

    def get_or_create(self, topic: str, queue_id: int) -> ConsumeQueue:
        """Returns the queue. Raises RecordRefused if the topic cannot name a folder or the queue id is out of range."""
        queue = self._queues.get((topic, queue_id))
        if queue is not None:
            return queue
        name = topic.encode("utf-8", "replace")
        if not 0 <= queue_id <= _QUEUE_ID_MAX or not _is_folder_name(topic):
            raise RecordRefused(f"no queue can be named {topic!r} {queue_id}")
        if len(name) > _FOLDER_NAME_BYTES_MAX or name.decode() != topic:
            raise RecordRefused(
                f"topic of {len(name)} bytes; at most {_FOLDER_NAME_BYTES_MAX} of valid UTF-8 can be kept"
            )
        return self._queue(topic, queue_id)

    def _queue(self, topic: str, queue_id: int) -> ConsumeQueue:
        folder = self._folder / topic / str(queue_id)
        queue = ConsumeQueue(topic, queue_id, folder, self._entries_per_file, self._mapped)
        self._queues[topic, queue_id] = queue
        return queue

    def queue_ids(self, topic: str) -> list[int]:
        """Returns the ids of those queues of `topic` that ever had a message."""
        return sorted(queue.queue_id for queue in self._queues.values() if queue.topic == topic and queue.max_offset)

    def topics(self) -> set[str]:
        """Returns the topics that have a queue which ever had a message."""
        return {queue.topic for queue in self._queues.values() if queue.max_offset}

    # --- deleted topics

    def deleted_until(self, topic: str) -> int:
        """Returns the commit-log offset below which records of `topic` are deleted; 0 when it was never deleted."""
        return self._deleted.get(topic, 0)

    def delete_topic(self, topic: str, log_end: int, log_min_offset: int) -> None:
        """Deletes the queues of `topic`, on the disk too; a name that is not possible for a topic is ignored.

        Raises OSError.
        """
        if not _is_folder_name(topic):
            return
        self._forget_sums()
        self._deleted = self._deletions_above(log_min_offset) | {topic: log_end}
        self._files.replace_json(self._deleted_path, self._deleted)
        for place in [place for place in self._queues if place[0] == topic]:
            self._queues.pop(place).close()
        shutil.rmtree(self._folder / topic, ignore_errors=True)
        self._files.sync_path(self._folder)

    def forget_deletions_below(self, log_min_offset: int) -> None:
        """Removes from `deleted_topics.json` the topics of which the log has no record any more. Raises OSError."""
        left = self._deletions_above(log_min_offset)
        if left != self._deleted:
            self._files.replace_json(self._deleted_path, left)
            self._deleted = left

    def _deletions_above(self, log_min_offset: int) -> dict[str, int]:
        return {name: end for name, end in self._deleted.items() if end > log_min_offset}


def _is_folder_name(topic: str) -> bool:
    """Tells whether `topic` can name a folder directly in `consumequeue/`: a path must not lead out of it."""
    return topic not in ("", ".", "..") and "/" not in topic and "\0" not in topic
