"""Asking producers what became of a transaction that nobody ended (`TransactionalMessageServiceImpl.check`).

The scheduler's kind "transaction", one key: the half queue. A half is due when it was left alone for its immunity
(`transactionTimeOut`, 6 s, or longer where it asks for that), and again every `transactionCheckInterval` (30 s). Being
due means one of these:

    too old      older than messages are kept: given up
    asked often  `transactionCheckMax` times (15): given up
    nobody       no producer of its group is online: it waits for another interval, and that counts for nothing
    else         the half is appended anew with TRANSACTION_CHECK_TIMES + 1, and one producer is asked

What is given up goes to TRANS_CHECK_MAX_TIME_TOPIC, for people to look at. Where Apache counts a round in which
nobody could be asked, so that a producer away for eight minutes loses its messages, ours waits.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from broker.engine.config import BrokerConfig
from broker.engine.groups.members import Client, Members
from broker.engine.schedule.due_tasks import StepResult
from broker.engine.store.errors import RecordRefused
from broker.engine.store.message_store import MessageStore
from broker.engine.store.values import Appended, MessageDraft
from broker.engine.transactions.asking import ProducerQueue, check_request
from broker.engine.transactions.half import (
    HALF_QUEUE,
    check_times,
    destination,
    given_up,
    immunity_ms,
    next_version,
)
from broker.engine.transactions.op_records import OpRecords
from broker.engine.transactions.undecided import NOT_LOOKED_AT, Undecided
from remoting.wire.bodies.scheduler import AgendaEntry
from remoting.wire.names import HALF_TOPIC
from remoting.wire.properties import Property
from remoting.wire.stored_message import StoredMessage

logger = logging.getLogger(__name__)

KIND = "transaction"
KEY = str(HALF_QUEUE)
# One step: so many halves looked at and so many bytes written, about 10 ms of it.
STEP_LOOKS_MAX = 128
STEP_BYTES_MAX = 4 * 1024 * 1024
# Those that wait for a producer are looked at again and again: at most so many a second, less than a tenth of a core.
IDLE_LOOKS_PER_S = 1_000


_HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class _Due:
    """A half that something is done about: asked for (`client`) or, without one, given up."""

    half: StoredMessage
    draft: MessageDraft
    client: Client | None


class CheckBack:
    """DueTaskHandler of the kind "transaction". `before_giving_up` makes sure of the topic that it needs."""

    def __init__(
        self,
        store: MessageStore,
        undecided: Undecided,
        ops: OpRecords,
        members: Members,
        config: BrokerConfig,
        before_giving_up: Callable[[], object],
        clock: Callable[[], int],
    ) -> None:
        self._store = store
        self._undecided = undecided
        self._ops = ops
        self._producers = ProducerQueue(members)
        self._config = config
        self._before_giving_up = before_giving_up
        self._clock = clock
        self._late_ms = -1

    # what the scheduler asks

    @property
    def next_due_ms(self) -> int | None:
        return self._undecided.next_due_ms

    @property
    def waiting_count(self) -> int:
        return len(self._undecided)

    def agenda(self) -> list[AgendaEntry]:
        due_ms = self.next_due_ms
        if due_ms is None:
            return []
        return [
            AgendaEntry(kind=KIND, key=KEY, next_due_ms=due_ms, waiting_count=self.waiting_count, late_ms=self._late_ms)
        ]

    def carry_out(self, key: str, until_ms: int) -> StepResult:
        """Looks at what is due up to `until_ms`, and no later than now. Raises KeyError, StoreError."""
        if key != KEY:
            raise KeyError(key)
        now_ms = self._clock()
        todo, first_due_ms = self._collect(min(until_ms, now_ms), now_ms)
        if not todo:
            return StepResult(0, -1)
        if any(due.client is None for due in todo):
            self._before_giving_up()
        count = 0
        for due, successor in self._append(todo):
            self._follow(due, successor, now_ms)
            count += 1
        self._late_ms = max(0, now_ms - first_due_ms)
        return StepResult(count, self._late_ms)

    # deciding

    def _collect(self, until_ms: int, now_ms: int) -> tuple[list[_Due], int]:
        """What is to be done, and since when the first was due."""
        todo: list[_Due] = []
        first_due_ms = now_ms
        total_bytes = 0
        again_ms = now_ms + self._config.transaction_check_interval_ms
        again_ms += len(self._undecided) // IDLE_LOOKS_PER_S * 1000
        for _ in range(STEP_LOOKS_MAX):
            taken = self._undecided.take_due(until_ms, again_ms)
            if taken is None:
                break
            due = self._look(*taken, now_ms)
            if due is None:
                continue
            todo.append(due)
            first_due_ms = min(first_due_ms, max(taken[0], due.half.born_timestamp_ms))
            total_bytes += due.half.total_bytes
            if total_bytes >= STEP_BYTES_MAX:
                break
        return todo, first_due_ms

    def _look(self, due_ms: int, queue_offset: int, now_ms: int) -> _Due | None:
        """None for a half that waits on, and for one that is gone."""
        half = self._read(queue_offset)
        if half is None:
            logger.error("half message %d cannot be checked, it is gone or not a half message", queue_offset)
            self._undecided.remove(queue_offset)
            return None
        if due_ms == NOT_LOOKED_AT and (due_ms := self._first_due_ms(half, now_ms)) > now_ms:
            self._undecided.postpone(queue_offset, due_ms)
            return None
        is_old = now_ms - half.born_timestamp_ms > self._config.file_reserved_hours * _HOUR_MS
        if is_old or check_times(half) >= self._config.transaction_check_max:
            logger.error(
                "the transaction of %s is given up, %s; it is kept in TRANS_CHECK_MAX_TIME_TOPIC",
                *(half, "it is too old" if is_old else f"its producers were asked {check_times(half)} times"),
            )
            return _Due(half, given_up(half), None)
        client = self._producers.next(half.properties.get(Property.PGROUP, ""))
        return _Due(half, next_version(half, is_checked=True), client) if client is not None else None

    def _read(self, queue_offset: int) -> StoredMessage | None:
        entry = self._store.queue_entry(HALF_TOPIC, HALF_QUEUE, queue_offset)
        half = self._store.message_at(entry[0]) if entry is not None else None
        return half if half is not None and destination(half) is not None else None

    def _first_due_ms(self, half: StoredMessage, now_ms: int) -> int:
        """Of one that the last life of the broker left; the clock may have been set back since."""
        wait_ms = immunity_ms(half.properties, self._config.transaction_timeout_ms)
        if check_times(half):
            wait_ms = self._config.transaction_check_interval_ms
        return min(half.store_timestamp_ms, now_ms) + wait_ms

    # doing

    def _append(self, todo: list[_Due]) -> Iterator[tuple[_Due, Appended]]:
        """Appends all with one write; leaves out what can never be stored, so that it does not hold up the others.

        Yields each that is stored before the next is tried: the disk may be full in the middle, and then a half that
        has a new version must already be known by it. Raises StoreError.
        """
        try:
            appended = self._store.append_batch([due.draft for due in todo])
        except RecordRefused as error:
            if len(todo) > 1:
                for due in todo:
                    yield from self._append([due])
            else:
                logger.error("the transaction of %s cannot be checked: %s", todo[0].half, error)
            return
        yield from zip(todo, appended, strict=True)

    def _follow(self, due: _Due, successor: Appended, now_ms: int) -> None:
        self.succeeded(due.half, successor)
        if due.client is None:
            return
        self._undecided.postpone(successor.queue_offset, now_ms + self._config.transaction_check_interval_ms)
        request = check_request(due.half, due.draft, successor, self._config.name)
        due.client.connection.requester.send_oneway(request)

    def succeeded(self, half: StoredMessage, successor: Appended) -> None:
        """`successor` took the place of `half`, whose op record follows when it is safe."""
        queue_offset = half.queue_offset
        self._undecided.remove(queue_offset)
        self._ops.begin(queue_offset, successor.commit_log_offset)

        def flushed(error: Exception | None) -> None:
            if error is None:
                self._ops.follow(queue_offset)

        self._store.when_flushed(successor.commit_log_offset + successor.total_bytes, flushed)
