"""Sends that are stored and wait for the disk: how many there may be, and how long they wait.

A disk that is slow costs memory (every waiting send keeps its request) and trust (a sender gives up after 3 s). So new
sends are refused while too many wait, with RocketMQ's words for it: "[OVERLOAD]" for too many requests (its
`NettyRemotingAbstract` with a full `sendThreadPoolQueueCapacity`), "[REJECTREQUEST]" for a disk that does not keep up
(its `rejectRequest`). Both are SYSTEM_BUSY, on which RocketMQ 5's producers try another queue or
broker, and older ones tell their application.

A flush that takes longer than RocketMQ's `syncFlushTimeout` is answered FLUSH_DISK_TIMEOUT: the message is in the log,
and may be lost by a power cut. It counts as waiting all the same until the disk has it, so a disk that hangs ends
in refusals and not in memory.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from broker.engine.store.message_store import MessageStore
from broker.engine.store.values import Appended
from remoting.wire.codes import ResponseCode
from remoting.wire.errors import MessageError

# RocketMQ's `sendThreadPoolQueueCapacity`.
WAITING_SENDS_MAX = 10_000
# A disk that takes 100 MB/s has it in less than a second.
WAITING_BYTES_MAX = 64 * 1024 * 1024
# RocketMQ's `syncFlushTimeout`.
FLUSH_TIMEOUT_S = 5.0

# Called with where the messages are, once they are as safe as promised, or with why they are not.
Answer = Callable[[list[Appended] | MessageError], None]


class FlushTimedOut(MessageError):
    """FLUSH_DISK_TIMEOUT: `appended` are stored, and not known to be on the disk."""

    def __init__(self, appended: list[Appended]) -> None:
        super().__init__("FLUSH_DISK_TIMEOUT", ResponseCode.FLUSH_DISK_TIMEOUT)
        self.appended = appended


@dataclass(slots=True, eq=False)
class _Group:
    """Sends of one read, which wait for the same flush. Emptied when they are answered."""

    sends: list[tuple[Answer, list[Appended]]]
    deadline_s: float = 0.0


class FlushWaiting:
    """`refusal` makes a store's error the sender's."""

    def __init__(self, store: MessageStore, refusal: Callable[[Exception], MessageError]) -> None:
        self._store = store
        self._refusal = refusal
        self._groups: deque[_Group] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self.sends_count = 0
        self.waiting_bytes = 0

    def check_room(self) -> None:
        """Raises MessageError (SYSTEM_BUSY) when no more sends should be stored now."""
        if self.sends_count >= WAITING_SENDS_MAX:
            raise MessageError("[OVERLOAD]system busy, start flow control for a while", ResponseCode.SYSTEM_BUSY)
        if self.waiting_bytes >= WAITING_BYTES_MAX:
            raise MessageError("[REJECTREQUEST]system busy, start flow control for a while", ResponseCode.SYSTEM_BUSY)

    def wait(self, sends: list[tuple[Answer, list[Appended]]]) -> None:
        """Answers them when the log is flushed up to the last, or when that takes too long."""
        group = _Group(sends)
        count, size = len(sends), sum([one.total_bytes for _, appended in sends for one in appended])
        self.sends_count += count
        self.waiting_bytes += size

        def flushed(error: Exception | None) -> None:
            self.sends_count -= count
            self.waiting_bytes -= size
            answered, group.sends = group.sends, []
            for answer, appended in answered:
                answer(appended if error is None else self._refusal(error))

        last = sends[-1][1][-1]
        self._store.when_flushed(last.commit_log_offset + last.total_bytes, flushed)
        if group.sends:  # not in async mode, and not where it was safe already
            loop = asyncio.get_running_loop()
            group.deadline_s = loop.time() + FLUSH_TIMEOUT_S
            self._groups.append(group)
            if self._timer is None:
                self._timer = loop.call_at(group.deadline_s, self._time_out)

    def _time_out(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = None
        while self._groups and (not self._groups[0].sends or self._groups[0].deadline_s <= loop.time()):
            group = self._groups.popleft()
            answered, group.sends = group.sends, []
            for answer, appended in answered:
                answer(FlushTimedOut(appended))
        if self._groups:
            self._timer = loop.call_at(self._groups[0].deadline_s, self._time_out)
