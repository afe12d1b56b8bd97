"""Sends that are stored and wait for the flush: how many there may be, and how long they wait.

A slow disk costs memory (every waiting send keeps its request) and makes senders time out (after 3 s). So new sends are
refused while too many wait, with RocketMQ's texts: "[OVERLOAD]" for too many requests (its `NettyRemotingAbstract` with
a full `sendThreadPoolQueueCapacity`), "[REJECTREQUEST]" for a disk that does not keep up (its `rejectRequest`). Both
are SYSTEM_BUSY, on which RocketMQ 5's producers try another queue or broker, and older ones raise an exception.

A flush that takes longer than RocketMQ's `syncFlushTimeout` is answered FLUSH_DISK_TIMEOUT: the message is in the log,
and may be lost by a power cut. It still counts as waiting until it is flushed, so that a disk that hangs leads to
refusals and not to growing memory.
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
# A disk that writes 100 MB/s flushes them in less than a second.
WAITING_BYTES_MAX = 64 * 1024 * 1024
# RocketMQ's `syncFlushTimeout`.
FLUSH_TIMEOUT_S = 5.0

# Called with the places of the messages, once they are as safe as the flush mode promises, or with the error.
Answer = Callable[[list[Appended] | MessageError], None]


class FlushTimedOut(MessageError):
    """Answer FLUSH_DISK_TIMEOUT: `appended` are stored, but not known to be flushed."""

    def __init__(self, appended: list[Appended]) -> None:
        super().__init__("FLUSH_DISK_TIMEOUT", ResponseCode.FLUSH_DISK_TIMEOUT)
        self.appended = appended


@dataclass(slots=True, eq=False)
class _Group:
    """The sends of one read, which wait for the same flush. Emptied when they are answered."""

    sends: list[tuple[Answer, list[Appended]]]
    deadline_s: float = 0.0


class FlushWaiting:
    """Answers sends after their flush or after `FLUSH_TIMEOUT_S`, and counts those that wait."""

    def __init__(self, store: MessageStore, refusal: Callable[[Exception], MessageError]) -> None:
        """`refusal` turns an error of the store into the answer to the sender."""
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
        """Answers the sends when the log is flushed up to the last of them, or when that takes too long."""
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
        if group.sends:  # not with flush=async, nor where the log was flushed already
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
