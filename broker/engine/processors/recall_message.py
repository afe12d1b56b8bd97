"""RECALL_MESSAGE (370): a producer recalls a message that waits for its delivery time (`RecallMessageProcessor`).

The checks are in RocketMQ's order, with its response codes. A recall stores a delete marker, a message in the same
timer slot as the recalled one, in Apache's format. It is answered after the flush, or after the time that a send waits
for one: as Apache does, with SUCCESS in both cases. It does not check whether the recalled message exists.
"""

from __future__ import annotations

from collections.abc import Callable

from broker.engine.config import BrokerConfig
from broker.engine.sending.accepting import Accepting, Answer
from broker.engine.sending.flush_waiting import FlushTimedOut
from broker.engine.serving.requests import Request
from broker.engine.store.values import Appended, MessageDraft
from broker.engine.topics.topic_configs import Topics
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.errors import MessageError
from remoting.wire.headers.recall import RecallMessageHeader, RecallMessageResponseHeader
from remoting.wire.headers.typed import read_header, write_header
from remoting.wire.properties import Property
from remoting.wire.recall_handle import RecallHandle, read_recall_handle

REGION = {"MSG_REGION": "DefaultRegion"}
MARKER_BODY = b"0"
MARKER_TAG = "_RECALL_TAG_"


class RecallMessage:
    """Processor of recalls."""

    def __init__(self, *, topics: Topics, accepting: Accepting, config: BrokerConfig, clock: Callable[[], int]) -> None:
        """`clock`: ms since the epoch."""
        self._topics = topics
        self._accepting = accepting
        self._config = config
        self._clock = clock

    def __call__(self, request: Request) -> Command | None:
        """Submits the delete marker and returns None: the answer is sent after the flush, or when that takes too long.

        Returns the answer to a recall that is refused. Raises WireError with the code to answer.
        """
        header = read_header(RecallMessageHeader, request.command.ext_fields)
        try:
            handle = self._checked(header)
        except MessageError as error:
            return response(request.command, error.response_code, str(error), ext_fields=REGION)
        now_ms = self._clock()
        draft = MessageDraft(
            topic=handle.topic,
            queue_id=0,
            body=MARKER_BODY,
            born_host=request.connection.peer_host,
            store_host=self._config.store_host,
            born_timestamp_ms=now_ms,
        )
        properties = {
            Property.TAGS: MARKER_TAG,
            Property.TIMER_DEL_UNIQKEY: handle.unique_key,
            Property.UNIQ_KEY: handle.unique_key,
            Property.TIMER_DELIVER_MS: handle.time_text,
            Property.BORN_TIMESTAMP: str(now_ms),
        }
        if header.producer_group:
            properties[Property.PGROUP] = header.producer_group
        self._accepting.submit(draft, properties, waits=True, answer=_answering(request, handle))
        return None

    def _checked(self, header: RecallMessageHeader) -> RecallHandle:
        """Returns the handle of the message to recall. Raises MessageError."""
        if not self._config.recalls:
            raise MessageError("recall failed, operation is forbidden", ResponseCode.NO_PERMISSION)
        if self._topics.find(header.topic) is None:
            raise MessageError(f"recall failed, the topic[{header.topic}] not exist", ResponseCode.TOPIC_NOT_EXIST)
        handle = read_recall_handle(header.recall_handle)
        if handle.topic != header.topic:
            raise MessageError("recall failed, topic not match", ResponseCode.ILLEGAL_OPERATION)
        if handle.broker_name != self._config.name:
            raise MessageError("recall failed, broker service not available", ResponseCode.ILLEGAL_OPERATION)
        left_ms = (int(handle.time_text) if handle.time_text.isdecimal() else -1) - self._clock()
        if not 0 < left_ms < self._config.timer_max_delay_s * 1000:
            raise MessageError("recall failed, timestamp invalid", ResponseCode.ILLEGAL_OPERATION)
        return handle


def _answering(request: Request, handle: RecallHandle) -> Answer:
    """Returns the callback that answers the request."""
    command, connection = request.command, request.connection

    def answer(result: list[Appended] | MessageError) -> None:
        if command.is_oneway:
            return
        # A marker that is stored recalls its message, also where its flush takes longer than a send waits for.
        if isinstance(result, MessageError) and not isinstance(result, FlushTimedOut):
            text = f"recall failed, execute error: {result}"
            connection.send(response(command, ResponseCode.SYSTEM_ERROR, text, ext_fields=REGION))
            return
        fields = REGION | write_header(RecallMessageResponseHeader(msg_id=handle.unique_key))
        connection.send(response(command, ResponseCode.SUCCESS, ext_fields=fields))

    return answer
