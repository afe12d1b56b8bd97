"""Transactional messages from the half message to its commit or rollback; composes the other files of this folder.

    sent (TRAN_MSG=true)  → half topic          → undecided
    37 commit             → copy in real topic  → op message
    37 rollback           → op message
    neither               → check-back (39)     → next version of the half, undecided

A half ends once. Its end is decided in memory when the request is processed, so that a second commit finds nothing
to deliver. The copy is in the log before the op message (`op_messages.py`); after a kill between the two, recovery
(`recovery.py`) writes the op message. Commits and rollbacks need no scheduler; only checks do.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from broker.engine.config import BrokerConfig
from broker.engine.groups.members import Members
from broker.engine.sending.accepting import Accepting, Answer
from broker.engine.sending.flush_waiting import FlushTimedOut
from broker.engine.store.message_store import MessageStore
from broker.engine.store.values import Appended, MessageDraft
from broker.engine.transactions.check_back import CheckBack
from broker.engine.transactions.half import (
    CHECK_TIMES_CHARS,
    HALF_QUEUE,
    committed_copy,
    destination,
    enter_half_topic,
    immunity_ms,
    next_version,
    op_message,
    resumed,
)
from broker.engine.transactions.op_messages import OpMessages
from broker.engine.transactions.progress import Progress, ProgressKeeper
from broker.engine.transactions.recovery import recover
from broker.engine.transactions.undecided import DUE_TIME_UNKNOWN, Undecided
from broker.engine.transactions.versions import has_follower, undecided_version
from remoting.complaints import ComplaintLog
from remoting.wire.codes import ResponseCode
from remoting.wire.errors import MessageError
from remoting.wire.names import CHECK_MAX_TIME_TOPIC, HALF_TOPIC
from remoting.wire.properties import Property
from remoting.wire.stored_message import StoredMessage

logger = logging.getLogger(__name__)

# Undecided halves at most, about 170 bytes each. RocketMQ has no limit.
UNDECIDED_MAX = 1_000_000
# An undecided half holds back the progress, and a start reads everything behind it. When it is so many halves behind
# the queue's end, it is appended anew, as RocketMQ does in every round of checks; so many of them in one round.
BEHIND_MAX = 100_000
RENEWED_AT_ONCE_MAX = 256

# Called with None when the commit or rollback is as safe as the flush mode promises, else with the error.
OnEnded = Callable[[MessageError | None], None]


class Transactions:
    """Takes half messages, ends them, and keeps the progress. `checks` is the scheduler's handler for check-backs."""

    def __init__(
        self,
        store: MessageStore,
        accepting: Accepting,
        members: Members,
        keeper: ProgressKeeper,
        config: BrokerConfig,
        complaints: ComplaintLog,
        *,
        before_giving_up: Callable[[], object],
        on_earlier_due: Callable[[], None],
        clock: Callable[[], int],
    ) -> None:
        """`before_giving_up` creates TRANS_CHECK_MAX_TIME_TOPIC where it is missing. `on_earlier_due` is called when a
        half is due before all others. `clock`: ms since the epoch."""
        self._store = store
        self._accepting = accepting
        self._keeper = keeper
        self._config = config
        self._on_earlier_due = on_earlier_due
        self._clock = clock
        self._undecided = Undecided(clock)
        self._ops = OpMessages(store, config.store_host, complaints, clock)
        self._next_progress: Progress | None = None
        self._is_recovered = False
        self.checks = CheckBack(store, self._undecided, self._ops, members, config, before_giving_up, complaints, clock)

    # start and stop

    def recover(self) -> None:
        """Finds the undecided halves, and ends without an op message. Call it once, before anything is appended."""
        found = recover(self._store, self._keeper.read())
        for op_offset, highest in found.marks:
            self._ops.remember(op_offset, highest)
        self._ops.start_at(found.next_op_offset)
        for queue_offset in found.undecided:
            self._undecided.add(queue_offset, DUE_TIME_UNKNOWN)
        for queue_offset in found.unrecorded:
            self._ops.begin(queue_offset, found.scanned_from)
            self._ops.follow(queue_offset)
        self._is_recovered = True
        if found.undecided or found.unrecorded:
            logger.info(
                "transactions: %d undecided; %d ended without an op message",
                *(len(found.undecided), len(found.unrecorded)),
            )

    async def tidy(self) -> None:
        """Renews halves that hold back the progress, and saves the progress of one round ago; called now and then.

        That one is on the disk by now, even with flush=async. Raises OSError.
        """
        self._renew_oldest()
        if self._next_progress is not None:
            self._write_progress(self._next_progress)
        self._next_progress = self._progress()

    async def stop(self) -> None:
        """Writes the op messages that are due and, once they are flushed, the progress. Raises OSError."""
        if not self._is_recovered:
            return
        self._ops.write()
        flushed = asyncio.get_running_loop().create_future()
        self._store.when_flushed(self._store.max_commit_log_offset, flushed.set_result)
        error = await flushed
        self._ops.stop()
        progress: Progress | None = self._progress()
        if self._store.flushed_commit_log_offset < self._store.max_commit_log_offset:
            # flush=async: an older progress only costs reading; one that counts what a power cut takes loses messages.
            progress = self._next_progress
        if error is None and progress is not None:
            self._write_progress(progress)

    def _write_progress(self, progress: Progress) -> None:
        """Writes the progress, unless there never was a half: a broker without transactions needs no such file."""
        if self._store.max_offset(HALF_TOPIC, HALF_QUEUE):
            self._keeper.write(progress)

    def _progress(self) -> Progress:
        firsts = [self._undecided.lowest, self._ops.lowest_open]
        end = self._store.max_offset(HALF_TOPIC, HALF_QUEUE)
        half_offset = min([end, *(first for first in firsts if first is not None)])
        return Progress(half_offset, self._ops.progress(half_offset), self._ops.scan_from)

    def pinned(self) -> int | None:
        """Returns the commit-log offset of the first half that is still needed, None when none is: retention keeps the
        log from there on."""
        firsts = [first for first in (self._undecided.lowest, self._ops.lowest_open) if first is not None]
        entry = self._store.queue_entry(HALF_TOPIC, HALF_QUEUE, min(firsts)) if firsts else None
        return entry[0] if entry is not None else None

    # half messages

    def begin(self, draft: MessageDraft, properties: dict[str, str], answer: Answer) -> Answer:
        """Makes `draft` the half message; returns the callback to submit it with, which calls `answer`.

        Raises MessageError: NO_PERMISSION, SYSTEM_BUSY, MESSAGE_ILLEGAL.
        """
        if self._config.rejects_transactions:
            raise MessageError(
                f"the broker[{self._config.advertise_host}] sending transaction message is forbidden",
                ResponseCode.NO_PERMISSION,
            )
        if len(self._undecided) >= UNDECIDED_MAX:
            raise MessageError(
                f"{UNDECIDED_MAX} transactions wait for their commit or rollback; end some, then send again",
                ResponseCode.SYSTEM_BUSY,
            )
        enter_half_topic(draft, properties)
        self._accepting.check_size(len(draft.body), draft.properties_text + CHECK_TIMES_CHARS * " ")
        immune_ms = immunity_ms(properties, self._config.transaction_timeout_ms)

        def stored(result: list[Appended] | MessageError) -> None:
            halves = result.appended if isinstance(result, FlushTimedOut) else result
            if immune_ms > self._config.transaction_timeout_ms and not isinstance(halves, MessageError):
                self._undecided.postpone(halves[0].queue_offset, self._clock() + immune_ms)
            answer(result)

        return stored

    def appended(self, appended: list[Appended]) -> None:
        """Adds the half messages among the messages that were just stored, of whatever topic."""
        for one in appended:
            if one.topic == HALF_TOPIC and one.queue_id == HALF_QUEUE:
                self._add_undecided(one.queue_offset, self._clock() + self._config.transaction_timeout_ms)

    def _add_undecided(self, queue_offset: int, due_ms: int) -> None:
        first_ms = self._undecided.next_due_ms
        self._undecided.add(queue_offset, due_ms)
        if first_ms is None or due_ms < first_ms:
            self._on_earlier_due()

    # commit and rollback

    def undecided_version(self, half: StoredMessage) -> StoredMessage | None:
        """Returns the version of `half` that is undecided now; None when the half has ended.

        A producer may name a version that a check has replaced since.
        """
        return undecided_version(self._store, half, self._undecided)

    def commit(self, half: StoredMessage, on_ended: OnEnded) -> None:
        """Delivers the undecided `half` to its topic. `on_ended` is called after the flush. Raises MessageError."""
        place = destination(half)
        if place is None:
            raise MessageError(f"{half} names no real topic to be delivered to", ResponseCode.SYSTEM_ERROR)
        self._end(half, committed_copy(half, *place), lambda _: self._ops.follow(half.queue_offset), on_ended)

    def roll_back(self, half: StoredMessage, on_ended: OnEnded) -> None:
        """Ends the undecided `half` without delivery. `on_ended` is called after the flush. Raises MessageError."""
        record = op_message([half.queue_offset], self._config.store_host, self._clock())
        self._end(half, record, lambda op: self._ops.written([half.queue_offset], op), on_ended)

    def _end(
        self, half: StoredMessage, draft: MessageDraft, when_safe: Callable[[Appended], None], on_ended: OnEnded
    ) -> None:
        """Stores `draft`, which ends `half`.

        `when_safe` is called after the flush; that is after `on_ended` where waiting for the flush timed out.
        """

        def stored(result: list[Appended] | MessageError) -> None:
            if isinstance(result, FlushTimedOut):
                self._when_flushed(result.appended[0], when_safe)
                on_ended(result)
            elif isinstance(result, MessageError):
                self._undo_end(half)
                on_ended(result)
            else:
                when_safe(result[0])
                on_ended(None)

        self._undecided.remove(half.queue_offset)
        self._ops.begin(half.queue_offset)
        try:
            self._accepting.submit_batch([draft], waits=True, answer=stored)
        except MessageError:
            self._undo_end(half)
            raise

    def resume(self, record: StoredMessage, answer: Answer) -> None:
        """Puts a half that was given up back into the half topic, as if it had never been checked. Raises MessageError.

        This is done once for a half: two halves could be committed and delivered twice.
        """
        if record.topic != CHECK_MAX_TIME_TOPIC or Property.REAL_TOPIC not in record.properties:
            raise MessageError(
                f"{record} is no half message that was given up: those are in {CHECK_MAX_TIME_TOPIC}",
                ResponseCode.SYSTEM_ERROR,
            )
        if has_follower(self._store, record):
            raise MessageError(f"{record} was resumed before; it is not resumed again", ResponseCode.SYSTEM_ERROR)
        self._accepting.submit_batch([resumed(record)], waits=True, answer=answer)

    def _when_flushed(self, appended: Appended, do: Callable[[Appended], None]) -> None:
        def flushed(error: Exception | None) -> None:
            if error is None:
                do(appended)

        self._store.when_flushed(appended.commit_log_offset + appended.total_bytes, flushed)

    def _undo_end(self, half: StoredMessage) -> None:
        """Makes `half` undecided again, because its end was not stored: the producer must commit or roll back again."""
        self._ops.undo(half.queue_offset)
        self._add_undecided(half.queue_offset, self._clock() + self._config.transaction_check_interval_ms)

    # keeping recovery short

    def _renew_oldest(self) -> None:
        """Appends the halves anew that are more than `BEHIND_MAX` behind the queue's end. Raises StoreError."""
        if len(self._undecided) > BEHIND_MAX // 2:
            return
        behind = self._store.max_offset(HALF_TOPIC, HALF_QUEUE) - BEHIND_MAX
        for queue_offset in self._undecided.below(behind, RENEWED_AT_ONCE_MAX):
            self._renew(queue_offset)

    def _renew(self, queue_offset: int) -> None:
        entry = self._store.queue_entry(HALF_TOPIC, HALF_QUEUE, queue_offset)
        half = self._store.message_at(entry[0]) if entry is not None else None
        if half is None or destination(half) is None:
            self._undecided.remove(queue_offset)
            return
        due_ms = self._undecided.due_ms(queue_offset)
        successor = self._store.append(next_version(half, is_checked=False))
        self.checks.succeeded(half, successor)
        self._undecided.postpone(successor.queue_offset, due_ms)
