"""Putting a message into the store on behalf of a client: delay levels, store errors as answers, the wait for the disk.

Shared by sending and sending back, so that both keep the same promise: an answer with SUCCESS means that the message
is as safe as the store's flush mode says.
"""

from __future__ import annotations

from collections.abc import Callable

from broker.engine.schedule.entering import delay_level, enter_schedule
from broker.engine.schedule.levels import DelayLevels
from broker.engine.store.errors import RecordRefused, StoreClosed, StoreError, StoreFenced, StoreFull
from broker.engine.store.message_store import MessageStore
from broker.engine.store.values import Appended, MessageDraft
from remoting.wire.codes import ResponseCode
from remoting.wire.errors import MessageError
from remoting.wire.limits import PROPERTIES_BYTES_MAX
from remoting.wire.properties import encode_properties
from remoting.wire.stored_message import TRANSACTION_COMMIT, TRANSACTION_MASK
from remoting.wire.tags import tags_code

# The CRC property that the store appends to every record.
_CRC_PROPERTY_BYTES = 20
_UTF8_BYTES_MAX = 4


class Accepting:
    """`body_bytes_max`: RocketMQ's `maxMessageSize`."""

    def __init__(
        self, store: MessageStore, levels: DelayLevels, clock: Callable[[], int], *, body_bytes_max: int
    ) -> None:
        self._store = store
        self._levels = levels
        self._clock = clock
        self._body_bytes_max = body_bytes_max

    def append(self, draft: MessageDraft, properties: dict[str, str]) -> Appended:
        """Stores `draft`, which gets `properties`; one with a delay level goes into the schedule.

        Raises MessageError: MESSAGE_ILLEGAL for one that is too large, SERVICE_NOT_AVAILABLE for a store that cannot.
        """
        level = delay_level(properties)
        if level > 0 and draft.sys_flag & TRANSACTION_MASK in (0, TRANSACTION_COMMIT):
            enter_schedule(draft, properties, level, self._levels, self._clock())
        else:
            draft.properties_text = encode_properties(properties)
            draft.tags_code = tags_code(properties.get("TAGS"))
        self.check_size(len(draft.body), draft.properties_text)
        try:
            return self._store.append(draft)
        except StoreError as error:
            raise refusal(error) from error

    def append_batch(self, drafts: list[MessageDraft]) -> list[Appended]:
        """Stores all or none, side by side. Raises MessageError."""
        try:
            return self._store.append_batch(drafts)
        except StoreError as error:
            raise refusal(error) from error

    def when_safe(self, last: Appended, answer: Callable[[MessageError | None], None]) -> None:
        """Calls `answer` once everything up to `last` is as safe as promised, with an error when it is not."""

        def flushed(error: Exception | None) -> None:
            answer(None if error is None else refusal(error))

        self._store.when_flushed(last.commit_log_offset + last.total_bytes, flushed)

    def check_size(self, body_bytes: int, properties_text: str) -> None:
        """Raises MessageError (MESSAGE_ILLEGAL) naming the limit."""
        if body_bytes > self._body_bytes_max:
            raise MessageError(
                f"the message body has {body_bytes} bytes; {self._body_bytes_max} are allowed",
                ResponseCode.MESSAGE_ILLEGAL,
            )
        limit = PROPERTIES_BYTES_MAX - _CRC_PROPERTY_BYTES
        if len(properties_text) * _UTF8_BYTES_MAX > limit and len(properties_text.encode("utf-8", "replace")) > limit:
            raise MessageError(
                f"the message properties have more than the {limit} bytes that are allowed",
                ResponseCode.MESSAGE_ILLEGAL,
            )


def refusal(error: Exception) -> MessageError:
    """What a sender hears when the store refuses (behaviour P2-139)."""
    match error:
        case RecordRefused():
            code = ResponseCode.MESSAGE_ILLEGAL
        case StoreFull() | StoreFenced() | StoreClosed():
            code = ResponseCode.SERVICE_NOT_AVAILABLE
        case _:
            code = ResponseCode.SYSTEM_ERROR
    return MessageError(str(error), code)
