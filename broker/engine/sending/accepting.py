"""Storing the messages that clients send: delays and timers, store errors as response codes, waiting for the flush.

Every request that stores a message uses it, so that all give the same guarantee: an answer with SUCCESS means that the
message is as safe as the store's flush mode says. A recall alone has SUCCESS also for a flush that takes too long.

Messages that are submitted during one read of a connection are stored together, with one write, when `store_submitted`
is called at the read's end; they keep their order. A submission is stored as a whole or not at all, and a refused one
does not affect the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from broker.engine.config import BrokerConfig
from broker.engine.schedule.entering import delay_level, enter_schedule, enter_timer, wants_timer
from broker.engine.schedule.level_history import LevelHistory
from broker.engine.sending.flush_waiting import Answer, FlushWaiting
from broker.engine.stats import BrokerStats
from broker.engine.store.errors import RecordRefused, StoreClosed, StoreError, StoreFailed, StoreFull
from broker.engine.store.message_store import MessageStore
from broker.engine.store.values import Appended, MessageDraft
from remoting.complaints import ComplaintLog
from remoting.wire.codes import ResponseCode
from remoting.wire.errors import MessageError
from remoting.wire.limits import PROPERTIES_BYTES_MAX
from remoting.wire.stored_message import TRANSACTION_COMMIT, TRANSACTION_MASK

__all__ = ["Accepting", "Answer", "refusal"]

# Submissions are stored before the read's end when they have so many bytes: larger writes are not cheaper per message.
SUBMITTED_BYTES_MAX = 1024 * 1024
# The CRC property that the store appends to every record.
_CRC_PROPERTY_BYTES = 20
_UTF8_BYTES_MAX = 4


class _Submission(NamedTuple):
    """Drafts that are stored side by side; `waits`: `answer` is called only after the flush."""

    drafts: list[MessageDraft]
    waits: bool
    answer: Answer


class Accepting:
    """Checks submitted messages, redirects delayed ones to the schedule topics, stores them and answers."""

    def __init__(
        self,
        store: MessageStore,
        levels: LevelHistory,
        clock: Callable[[], int],
        config: BrokerConfig,
        stats: BrokerStats,
        complaints: ComplaintLog,
    ) -> None:
        """`levels`: the tables of delay levels. `clock`: ms since the epoch. `stats` gets the times of writes, and what
        was not stored; `complaints` a line for it, because after a disk has failed every send is refused."""
        self._store = store
        self._levels = levels
        self._clock = clock
        self._config = config
        self._stats = stats
        self._complaints = complaints
        self._flush_waiting = FlushWaiting(store, refusal)
        self._submitted: list[_Submission] = []
        self._submitted_bytes = 0

    def submit(self, draft: MessageDraft, properties: dict[str, str], *, waits: bool, answer: Answer) -> None:
        """Submits `draft` with `properties`. One with a delay level or a delivery time is redirected to the schedule
        topic or the timer topic, and `properties` are changed accordingly. `waits`: answer after the flush.

        Raises MessageError: MESSAGE_ILLEGAL for a message that is too large, or a delivery time too far away;
        SYSTEM_BUSY while too many sends wait for the disk.
        """
        level = delay_level(properties)
        can_wait = draft.sys_flag & TRANSACTION_MASK in (0, TRANSACTION_COMMIT)
        if level > 0 and can_wait:
            enter_schedule(draft, properties, level, self._levels.current, self._clock())
        elif not (can_wait and wants_timer(properties) and self._enter_timer(draft, properties)):
            draft.set_properties(properties)
        self.check_size(len(draft.body), draft.properties_text)
        self._submit(_Submission([draft], waits, answer), len(draft.body))

    def _enter_timer(self, draft: MessageDraft, properties: dict[str, str]) -> bool:
        return enter_timer(draft, properties, self._clock(), self._config.timer_max_delay_s)

    def submit_batch(self, drafts: list[MessageDraft], *, waits: bool, answer: Answer) -> None:
        """Submits `drafts` as they are, to be stored side by side, all or none. Raises MessageError (SYSTEM_BUSY)."""
        self._submit(_Submission(drafts, waits, answer), sum([len(draft.body) for draft in drafts]))

    def _submit(self, submission: _Submission, body_bytes: int) -> None:
        self._flush_waiting.check_room()
        self._submitted.append(submission)
        self._submitted_bytes += body_bytes
        if self._submitted_bytes >= SUBMITTED_BYTES_MAX:
            self.store_submitted()

    def store_submitted(self) -> None:
        """Stores the submissions; answers those that need not wait for the flush now, the others after it."""
        submitted, self._submitted, self._submitted_bytes = self._submitted, [], 0
        if not submitted:
            return
        waiting: list[tuple[Answer, list[Appended]]] = []
        for submission, result in zip(submitted, self._append(submitted), strict=True):
            if submission.waits and not isinstance(result, MessageError):
                waiting.append((submission.answer, result))
            else:
                submission.answer(result)
        if waiting:
            self._flush_waiting.wait(waiting)

    def _append(self, submitted: list[_Submission]) -> list[list[Appended] | MessageError]:
        """Appends all submissions with one write or, if that is refused, each on its own; returns a result for each."""
        if self._store.full_because is not None:
            self._stats.put_failures += sum([len(submission.drafts) for submission in submitted])
            return [MessageError(self._store.full_because, ResponseCode.SERVICE_NOT_AVAILABLE) for _ in submitted]
        began_s = time.perf_counter()
        try:
            appended = self._store.append_batch([draft for submission in submitted for draft in submission.drafts])
        except StoreError as error:
            if len(submitted) > 1:
                return [result for submission in submitted for result in self._append([submission])]
            topic = submitted[0].drafts[0].topic
            self._complaints.warn(topic, "not stored", "a message to topic %s was not stored: %s", topic, error)
            self._stats.put_failures += len(submitted[0].drafts)
            return [refusal(error)]
        self._stats.put_times.add(time.perf_counter() - began_s, len(appended))
        if len(appended) == len(submitted):
            return [[one] for one in appended]
        each = iter(appended)
        return [[next(each) for _ in submission.drafts] for submission in submitted]

    def check_size(self, body_bytes: int, properties_text: str) -> None:
        """Raises MessageError (MESSAGE_ILLEGAL) when body or properties are too large; it names the limit."""
        if body_bytes > self._config.body_bytes_max:
            raise MessageError(
                f"the message body has {body_bytes} bytes; {self._config.body_bytes_max} are allowed",
                ResponseCode.MESSAGE_ILLEGAL,
            )
        limit = PROPERTIES_BYTES_MAX - _CRC_PROPERTY_BYTES
        if len(properties_text) * _UTF8_BYTES_MAX > limit and len(properties_text.encode("utf-8", "replace")) > limit:
            raise MessageError(
                f"the message properties have more than the {limit} bytes that are allowed",
                ResponseCode.MESSAGE_ILLEGAL,
            )


def refusal(error: Exception) -> MessageError:
    """Returns the answer to a sender for an error of the store."""
    match error:
        case RecordRefused():
            code = ResponseCode.MESSAGE_ILLEGAL
        case StoreFull() | StoreFailed() | StoreClosed():
            code = ResponseCode.SERVICE_NOT_AVAILABLE
        case _:
            code = ResponseCode.SYSTEM_ERROR
    return MessageError(str(error), code)
