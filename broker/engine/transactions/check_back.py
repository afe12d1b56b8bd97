"""The check-back: asks producers for the state of undecided transactions (`TransactionalMessageServiceImpl.check`).

The scheduler's kind "transaction", one key: the half queue. A half is due when its immunity time is over
(`transactionTimeOut`, 6 s, or longer where the message asks for that), and again every `transactionCheckInterval`
(30 s). For a half that is due, one of these cases applies:

    too old      older than messages are kept: it is given up
    asked often  `transactionCheckMax` times (15): it is given up
    no producer  of its group is online: it waits for another interval, and this does not count as a check
    else         the half is appended anew with TRANSACTION_CHECK_TIMES + 1, and one producer is asked

A half that is given up is moved to TRANS_CHECK_MAX_TIME_TOPIC, for people to look at. Apache's broker also counts a
check for which no producer was online, so that a producer that is away for eight minutes loses its messages; this one
waits for the producer.
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
from broker.engine.transactions.op_messages import OpMessages
from broker.engine.transactions.undecided import DUE_TIME_UNKNOWN, Undecided
from remoting.complaints import ComplaintLog
from remoting.wire.bodies.scheduler import AgendaEntry
from remoting.wire.names import HALF_TOPIC
from remoting.wire.properties import Property
from remoting.wire.stored_message import StoredMessage

logger = logging.getLogger(__name__)

KIND = "transaction"
KEY = str(HALF_QUEUE)
# Limits of one step: the halves that it examines and the bytes that it writes, about 10 ms.
STEP_LOOKS_MAX = 128
STEP_BYTES_MAX = 4 * 1024 * 1024
# Halves whose producers are offline are examined again and again: at most so many a second, a tenth of a core or less.
IDLE_LOOKS_PER_S = 1_000


_HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class _Due:
    """A half that a step acts on: `draft` is appended, and `client` is asked; without a client the half is given up."""

    half: StoredMessage
    draft: MessageDraft
    client: Client | None


class CheckBack:
    """DueTaskHandler of the kind "transaction", whose one key is the half queue."""

    def __init__(
        self,
        store: MessageStore,
        undecided: Undecided,
        ops: OpMessages,
        members: Members,
        config: BrokerConfig,
        before_giving_up: Callable[[], object],
        complaints: ComplaintLog,
        clock: Callable[[], int],
    ) -> None:
        """`before_giving_up` creates TRANS_CHECK_MAX_TIME_TOPIC where it is missing. `complaints` gets a line of the
        transactions of a topic that are given up. `clock`: ms since the epoch."""
        self._store = store
        self._undecided = undecided
        self._ops = ops
        self._producers = ProducerQueue(members)
        self._config = config
        self._before_giving_up = before_giving_up
        self._complaints = complaints
        self._clock = clock
        self._late_ms = -1

    # for the scheduler

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
        """Checks the halves that are due by `until_ms` and by now. Raises KeyError, StoreError."""
        if key != KEY:
            raise KeyError(key)
        now_ms = self._clock()
        dues, first_due_ms = self._collect(min(until_ms, now_ms), now_ms)
        if not dues:
            return StepResult(0, -1)
        if any(due.client is None for due in dues):
            self._before_giving_up()
        count = 0
        for due, successor in self._append(dues):
            self._finish(due, successor, now_ms)
            count += 1
        self._late_ms = max(0, now_ms - first_due_ms)
        return StepResult(count, self._late_ms)

    # deciding

    def _collect(self, until_ms: int, now_ms: int) -> tuple[list[_Due], int]:
        """Returns the halves to act on, and since when the first of them was due."""
        dues: list[_Due] = []
        first_due_ms = now_ms
        total_bytes = 0
        again_ms = now_ms + self._config.transaction_check_interval_ms
        again_ms += len(self._undecided) // IDLE_LOOKS_PER_S * 1000
        for _ in range(STEP_LOOKS_MAX):
            taken = self._undecided.take_due(until_ms, again_ms)
            if taken is None:
                break
            due = self._examine(*taken, now_ms)
            if due is None:
                continue
            dues.append(due)
            first_due_ms = min(first_due_ms, max(taken[0], due.half.born_timestamp_ms))
            total_bytes += due.half.total_bytes
            if total_bytes >= STEP_BYTES_MAX:
                break
        return dues, first_due_ms

    def _examine(self, due_ms: int, queue_offset: int, now_ms: int) -> _Due | None:
        """Returns how to act on a half; None for one that goes on waiting, and for one that is missing in the store."""
        half = self._read(queue_offset)
        if half is None:
            logger.error("half message %d cannot be checked, it is missing or not a half message", queue_offset)
            self._undecided.remove(queue_offset)
            return None
        if due_ms == DUE_TIME_UNKNOWN and (due_ms := self._first_due_ms(half, now_ms)) > now_ms:
            self._undecided.postpone(queue_offset, due_ms)
            return None
        is_old = now_ms - half.born_timestamp_ms > self._config.file_reserved_hours * _HOUR_MS
        if is_old or check_times(half) >= self._config.transaction_check_max:
            reason = "it is too old" if is_old else f"its producers were asked {check_times(half)} times"
            # A producer that ends none of its transactions has all of them given up; each is in the topic named here.
            words = "the transaction of %s is given up, %s; it is kept in TRANS_CHECK_MAX_TIME_TOPIC"
            self._complaints.error(_topic_of(half), "given up", words, half, reason)
            return _Due(half, given_up(half), None)
        client = self._producers.next(half.properties.get(Property.PGROUP, ""))
        return _Due(half, next_version(half, is_checked=True), client) if client is not None else None

    def _read(self, queue_offset: int) -> StoredMessage | None:
        entry = self._store.queue_entry(HALF_TOPIC, HALF_QUEUE, queue_offset)
        half = self._store.message_at(entry[0]) if entry is not None else None
        return half if half is not None and destination(half) is not None else None

    def _first_due_ms(self, half: StoredMessage, now_ms: int) -> int:
        """Returns when a half is due that recovery found; the clock may have been set back since it was stored."""
        wait_ms = immunity_ms(half.properties, self._config.transaction_timeout_ms)
        if check_times(half):
            wait_ms = self._config.transaction_check_interval_ms
        return min(half.store_timestamp_ms, now_ms) + wait_ms

    # acting

    def _append(self, dues: list[_Due]) -> Iterator[tuple[_Due, Appended]]:
        """Appends all drafts with one write; leaves out those that can never be stored, so that they do not hold up the
        others.

        When they are appended one by one, yields each before the next is tried: the disk may be full in between, and
        then the halves that have a new version must already be replaced by it. Raises StoreError.
        """
        try:
            appended = self._store.append_batch([due.draft for due in dues])
        except RecordRefused as error:
            if len(dues) > 1:
                for due in dues:
                    yield from self._append([due])
            else:
                half = dues[0].half
                words = "the transaction of %s cannot be checked: %s"
                self._complaints.error(_topic_of(half), "not checked", words, half, error)
            return
        yield from zip(dues, appended, strict=True)

    def _finish(self, due: _Due, successor: Appended, now_ms: int) -> None:
        """Replaces the half by `successor`, which was stored from its draft, and asks the producer."""
        self.succeeded(due.half, successor)
        if due.client is None:
            return
        self._undecided.postpone(successor.queue_offset, now_ms + self._config.transaction_check_interval_ms)
        request = check_request(due.half, due.draft, successor, self._config.name)
        due.client.connection.requester.send_oneway(request)

    def succeeded(self, half: StoredMessage, successor: Appended) -> None:
        """Replaces `half` by its stored `successor`; the op message of `half` is written when that one is flushed."""
        queue_offset = half.queue_offset
        self._undecided.remove(queue_offset)
        self._ops.begin(queue_offset, successor.commit_log_offset)

        def flushed(error: Exception | None) -> None:
            if error is None:
                self._ops.follow(queue_offset)

        self._store.when_flushed(successor.commit_log_offset + successor.total_bytes, flushed)


def _topic_of(half: StoredMessage) -> str:
    """Returns the topic that the half was sent to."""
    return half.properties.get(Property.REAL_TOPIC, HALF_TOPIC)
