"""Committed offsets of all groups and `config/consumerOffset.json` (RocketMQ's `ConsumerOffsetManager`).

A committed offset is the next queue offset to consume. A commit overwrites what was there, also with a smaller offset,
because resets and orderly consumers rely on that; a step back is logged, of one group once a minute. As in RocketMQ,
commits are kept in memory and saved every few seconds and at the stop; messages whose commit a kill took are consumed
again.

A reset by a tool is a commit that stays pending until the next pull of the queue was answered with it: commits
that were under way meanwhile must not undo it (RocketMQ's `resetOffsetTable`). Pending resets are not saved, their
offsets are.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from broker.engine.config_files import load_config_file, replace_file
from broker.engine.event_loop import PeriodicTask
from remoting.complaints import ComplaintLog
from remoting.wire.bodies.consume_stats import CommittedOffsets, read_committed_offsets, write_committed_offsets

logger = logging.getLogger(__name__)

FILE_NAME = "consumerOffset.json"
# RocketMQ's `flushConsumerOffsetInterval`.
SAVE_INTERVAL_S = 5.0


class _File(msgspec.Struct, rename="camel"):
    """Only its shape is read here; the keys are parsed by `read_committed_offsets`."""

    offset_table: dict[str, dict[int, int]] = {}


class Offsets:
    """`on_committed(group, topic, queue_id)` is called with every commit that changes something.

    Callers: the processors; the runtime (`load`, `clamp_to_queue_ends`, `start`, `stop`).
    """

    def __init__(
        self,
        folder: Path,
        on_committed: Callable[[str, str, int], None],
        complaints: ComplaintLog,
        *,
        save_interval_s: float = SAVE_INTERVAL_S,
    ) -> None:
        self._path = folder / FILE_NAME
        self._on_committed = on_committed
        self._complaints = complaints
        self._table: CommittedOffsets = {}
        self._pulled: CommittedOffsets = {}
        self._resets: CommittedOffsets = {}
        self._is_changed = False
        self._saving = PeriodicTask("save offsets", save_interval_s, self.save)

    def load(self) -> None:
        """Raises ConfigFileUnreadable."""
        document = load_config_file(self._path, _File)
        if document is not None:
            self._table = read_committed_offsets(msgspec.json.encode({"offsetTable": document.offset_table}))

    def clamp_to_queue_ends(self, max_offset: Callable[[str, int], int]) -> None:
        """Moves committed offsets that lie beyond their queue's end back to it. Call it once, after `load`.

        A power cut may have taken messages (flush=async, or not acknowledged yet) that were consumed already. New
        ones get their offsets: a group whose offset lay beyond the end would never be given those.
        """
        for (topic, group), queues in self._table.items():
            for queue_id, queue_offset in queues.items():
                end = max_offset(topic, queue_id)
                if queue_offset > end:
                    logger.warning(
                        "%s@%s queue %d: committed %d, the queue ends at %d; going on there",
                        *(topic, group, queue_id, queue_offset, end),
                    )
                    queues[queue_id] = end
                    self._is_changed = True

    def start(self) -> None:
        """Saves every `save_interval_s` from now on."""
        self._saving.start()

    async def stop(self) -> None:
        """Saves for the last time. Raises OSError."""
        await self._saving.stop()
        await self.save()

    def committed(self, group: str, topic: str, queue_id: int) -> int | None:
        return self._table.get((topic, group), {}).get(queue_id)

    def queue_count(self, group: str, topic: str) -> int:
        """Returns the number of queues with a committed offset."""
        return len(self._table.get((topic, group), ()))

    def commit(self, group: str, topic: str, queue_id: int, queue_offset: int) -> None:
        queues = self._table.setdefault((topic, group), {})
        before = queues.get(queue_id)
        if before == queue_offset:
            return
        queues[queue_id] = queue_offset
        self._is_changed = True
        if before is not None and queue_offset < before:
            words, offsets = "%s@%s queue %d moved back from %d to %d", (before, queue_offset)
            self._complaints.info(group, "moved back", words, topic, group, queue_id, *offsets)
        self._on_committed(group, topic, queue_id)

    def reset(self, group: str, topic: str, queue_id: int, queue_offset: int) -> None:
        """Commits where the group consumes next, whatever its members commit until their next pull."""
        self._resets.setdefault((topic, group), {})[queue_id] = queue_offset
        self.commit(group, topic, queue_id, queue_offset)

    def has_reset(self, group: str, topic: str, queue_id: int) -> bool:
        """Tells whether a reset waits for the next pull."""
        return queue_id in self._resets.get((topic, group), {})

    def take_reset(self, group: str, topic: str, queue_id: int) -> int | None:
        """Returns the offset of a pending reset, once: the pull that takes it goes on there."""
        queues = self._resets.get((topic, group))
        if queues is None:
            return None
        queue_offset = queues.pop(queue_id, None)
        if not queues:
            del self._resets[topic, group]
        return queue_offset

    def pulled(self, group: str, topic: str, queue_id: int, next_begin_offset: int) -> None:
        """Notes up to where the group was given messages; not saved."""
        self._pulled.setdefault((topic, group), {})[queue_id] = next_begin_offset

    def pulled_offset(self, group: str, topic: str, queue_id: int) -> int | None:
        return self._pulled.get((topic, group), {}).get(queue_id)

    def topics_of(self, group: str) -> list[str]:
        """Returns the topics on which the group committed an offset."""
        return [topic for topic, its_group in self._table if its_group == group]

    def groups_of(self, topic: str) -> list[str]:
        return [group for its_topic, group in self._table if its_topic == topic]

    def items(self) -> Iterator[tuple[str, str, int, int]]:
        """Yields (group, topic, queue id, committed offset) of all."""
        for (topic, group), queues in self._table.items():
            for queue_id, queue_offset in queues.items():
                yield group, topic, queue_id, queue_offset

    def keys(self) -> Iterator[tuple[str, str, int]]:
        """Yields (group, topic, queue id) of all; first commits made while this goes on may be among them or not."""
        for (topic, group), queues in list(self._table.items()):
            for queue_id in list(queues):
                yield group, topic, queue_id

    def forget_group(self, group: str) -> None:
        self._forget(lambda key: key[1] == group)

    def forget_topic(self, topic: str) -> None:
        self._forget(lambda key: key[0] == topic)

    def _forget(self, is_gone: Callable[[tuple[str, str]], bool]) -> None:
        for table in (self._table, self._pulled, self._resets):
            for key in [key for key in table if is_gone(key)]:
                del table[key]
                self._is_changed = True
                # At once: a topic of the same name begins at 0, and a kill must not bring its old offsets back.
                self._saving.wake()

    def encode(self) -> bytes:
        """Returns the body of GET_ALL_CONSUMER_OFFSET (43)."""
        return write_committed_offsets(self._table)

    async def save(self) -> None:
        """Writes the file if something changed; the disk is waited for in a thread."""
        if not self._is_changed:
            return
        self._is_changed = False
        try:
            await asyncio.to_thread(replace_file, self._path, self.encode())
        except OSError:
            self._is_changed = True
            raise
