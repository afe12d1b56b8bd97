"""Offsets in a file on this machine (Java `LocalFileOffsetStore`): each member of a broadcasting group has its own.

Files are written by threads, one after the other; queues that this member does not have now keep what is in the file.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from pathlib import Path

from consumer.engine.offset_store import OffsetStore
from consumer.engine.offset_store.member_folder import MemberFolder, claim_folder
from consumer.engine.offset_store.offset_file import read_offsets, write_offsets
from remoting.complaints import ComplaintLog
from remoting.wire.bodies.message_queue import MessageQueue

logger = logging.getLogger(__name__)

# Kind of the complaint about a disk that takes no offsets.
NOT_WRITTEN = "not written"


class LocalOffsetStore(OffsetStore):
    """`group_folder` is the group's on this machine; which of its folders is this member's is found in `open()`."""

    def __init__(self, group_folder: Path) -> None:
        super().__init__()
        self._group_folder = group_folder
        self._folder: MemberFolder | None = None
        self._stored: dict[MessageQueue, int] = {}
        self._turn = asyncio.Lock()
        self._complaints = ComplaintLog(logger)

    async def open(self) -> None:
        """Reads the file. Raises OSError and OffsetsUnreadable."""
        self._folder = await asyncio.to_thread(claim_folder, self._group_folder)
        try:
            self._stored = await asyncio.to_thread(read_offsets, self._folder.path)
        except BaseException:
            await self.close()
            raise
        logger.info("offsets of %d queues are kept in %s", len(self._stored), self._folder.path)

    async def close(self) -> None:
        async with self._turn:
            if self._folder is not None:
                self._folder.close()
                self._folder = None

    async def load(self, queue: MessageQueue) -> int | None:
        self.forget(queue)
        return self._stored.get(queue)

    async def persist(self, queues: Iterable[MessageQueue]) -> None:
        await self.persist_and_confirm(queues)

    async def persist_and_confirm(self, queues: Iterable[MessageQueue]) -> list[MessageQueue]:
        async with self._turn:
            held = self._held(queues)
            if self._folder is None:
                return list(held)
            merged = self._stored | held
            if merged == self._stored:
                return []
            try:
                await asyncio.to_thread(write_offsets, self._folder.path, merged)
            except OSError as error:
                self._complaints.warn(str(self._folder.path), NOT_WRITTEN, "offsets are not written: %s", error)
                return list(held)
            self._complaints.resolved(str(self._folder.path), NOT_WRITTEN)
            self._stored = merged
            return []
