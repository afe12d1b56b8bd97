"""Messages of one broker: by id, by key, by place in a queue, and their traces."""

from __future__ import annotations

from dataclasses import dataclass

from remoting.client.admin.requests import Requests
from remoting.client.errors import BrokerRefused
from remoting.wire.bodies.consume_queue import QueueEntries
from remoting.wire.bodies.document import read_body
from remoting.wire.bodies.trace import TraceRecord, read_trace
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.compression import decompress
from remoting.wire.errors import WireError
from remoting.wire.headers.messages import QueryConsumeQueueHeader, QueryMessageHeader, ViewMessageHeader
from remoting.wire.headers.pull import SUBSCRIPTION_FLAG, PullMessageHeader, PullMessageResponseHeader
from remoting.wire.headers.transactions import ResumeCheckHeader
from remoting.wire.headers.typed import read_header
from remoting.wire.limits import PULL_MESSAGES_MAX
from remoting.wire.message_id import decode_offset_message_id
from remoting.wire.names import TRACE_TOPIC
from remoting.wire.stored_message import StoredMessage, decode_messages

# The group that every broker has for tools; it commits nothing.
TOOLS_GROUP = "TOOLS_CONSUMER"
# `maxMsgsNumBatch`: what a broker's key index answers at most.
LOOKUP_MESSAGES_MAX = 64
# Apache's brokers read that many entries of a queue at most with one request of a tool.
QUEUE_ENTRIES_MAX = 512
LAST_MOMENT_MS = 2**63 - 1
# MQAdminImpl waits three times as long for lookups as for other requests.
LOOKUP_TIMEOUT_MS = 15_000
_PULLED = (
    ResponseCode.SUCCESS,
    ResponseCode.PULL_NOT_FOUND,
    ResponseCode.PULL_RETRY_IMMEDIATELY,
    ResponseCode.PULL_OFFSET_MOVED,
)


@dataclass(frozen=True, slots=True)
class QueuePage:
    """Messages of one queue in order, and where to go on. Offsets are queue offsets; the queue ends at `max_offset`."""

    messages: list[StoredMessage]
    next_offset: int
    min_offset: int
    max_offset: int


class Messages:
    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    async def view(self, address: str, message_id: str, topic: str | None = None) -> StoredMessage | None:
        """Returns the message with an offset message id (33); None where nothing is at that place any more.

        The id names an address, too; `address` is asked, so that an id that someone typed leads nowhere else. Raises
        BodyError for what is no offset message id.
        """
        _, commit_log_offset = decode_offset_message_id(message_id)
        header = ViewMessageHeader(offset=commit_log_offset, topic=topic)
        try:
            answer = await self._requests.ask(
                address, RequestCode.VIEW_MESSAGE_BY_ID, header, about=f"message {message_id!r}"
            )
        except BrokerRefused as error:
            if error.code == ResponseCode.SYSTEM_ERROR:
                return None
            raise
        return next(iter(decode_messages(answer.body)), None)

    async def by_key(
        self,
        address: str,
        topic: str,
        key: str,
        *,
        begin_ms: int = 0,
        end_ms: int = LAST_MOMENT_MS,
        count: int = LOOKUP_MESSAGES_MAX,
        with_deleted: bool = False,
    ) -> list[StoredMessage]:
        """Returns messages of the topic with this key, stored within the times (12); LOOKUP_MESSAGES_MAX at most.

        The broker looks by hash, so messages with another key that it answers are left out here. `with_deleted`: those
        of before the topic was deleted, too, as far as the log has them; Apache's brokers answer them in any case.
        """
        found = await self._lookup(
            address, topic, key, begin_ms, end_ms, min(count, LOOKUP_MESSAGES_MAX), with_deleted=with_deleted or None
        )
        return [message for message in found if message.topic == topic and key in message.keys]

    async def by_unique_key(
        self, address: str, topic: str, unique_key: str, *, begin_ms: int = 0, end_ms: int = LAST_MOMENT_MS
    ) -> list[StoredMessage]:
        """Returns the messages with this unique key (12): one, or several where it was sent or retried again."""
        found = await self._lookup(
            address, topic, unique_key, begin_ms, end_ms, LOOKUP_MESSAGES_MAX, unique_key_query="true"
        )
        return [message for message in found if message.unique_key == unique_key]

    async def pull(
        self, address: str, topic: str, queue_id: int, queue_offset: int, count: int = PULL_MESSAGES_MAX
    ) -> QueuePage:
        """Returns messages of a queue from `queue_offset` on, PULL_MESSAGES_MAX at most (11).

        Commits nothing and waits for nothing. An offset outside the queue gives no messages, and where to go on. From a
        moment on: `offsets.search` first.
        """
        header = PullMessageHeader(
            consumer_group=TOOLS_GROUP,
            topic=topic,
            queue_id=queue_id,
            queue_offset=queue_offset,
            max_msg_nums=max(1, min(count, PULL_MESSAGES_MAX)),
            sys_flag=SUBSCRIPTION_FLAG,
            commit_offset=0,
            suspend_timeout_millis=0,
            subscription="*",
            sub_version=0,
            expression_type="TAG",
        )
        answer = await self._requests.ask(
            address, RequestCode.PULL_MESSAGE, header, about=f"topic {topic!r}", accepted=_PULLED
        )
        place = read_header(PullMessageResponseHeader, answer.ext_fields)
        messages = decode_messages(answer.body) if answer.code == ResponseCode.SUCCESS else []
        return QueuePage(messages, place.next_begin_offset, place.min_offset, place.max_offset)

    async def queue_entries(
        self,
        address: str,
        topic: str,
        queue_id: int,
        queue_offset: int,
        count: int = PULL_MESSAGES_MAX,
        *,
        group: str | None = None,
    ) -> QueueEntries:
        """Returns entries of a consume queue (321), QUEUE_ENTRIES_MAX at most; with `group` what its filter says."""
        header = QueryConsumeQueueHeader(
            topic=topic,
            queue_id=queue_id,
            index=queue_offset,
            count=max(1, min(count, QUEUE_ENTRIES_MAX)),
            consumer_group=group,
        )
        answer = await self._requests.ask(
            address, RequestCode.QUERY_CONSUME_QUEUE, header, about=f"topic {topic!r}", timeout_ms=LOOKUP_TIMEOUT_MS
        )
        return read_body(QueueEntries, answer.body)

    async def trace(
        self, address: str, message_id: str, *, trace_topic: str = TRACE_TOPIC, begin_ms: int = 0
    ) -> list[TraceRecord]:
        """Returns what clients traced of a message, by its id or a key, on this broker, in the order of time (12).

        Traces of one message lie on several brokers: ask all that have the trace topic.
        """
        found = await self.by_key(address, trace_topic, message_id, begin_ms=begin_ms)
        records = [
            record
            for message in found
            for record in _traced(message)
            if message_id == record.message_id or message_id in (record.keys or "").split()
        ]
        return sorted(records, key=lambda record: record.timestamp_ms or 0)

    async def resume_check(self, address: str, message_id: str, topic: str | None = None) -> None:
        """Makes the broker ask again about a transaction that it gave up (323), by its offset message id."""
        header = ResumeCheckHeader(msg_id=message_id, topic=topic)
        code = RequestCode.RESUME_CHECK_HALF_MESSAGE
        await self._requests.ask(address, code, header, about=f"message {message_id!r}")

    async def _lookup(
        self,
        address: str,
        topic: str,
        key: str,
        begin_ms: int,
        end_ms: int,
        count: int,
        *,
        unique_key_query: str = "false",
        with_deleted: bool | None = None,
    ) -> list[StoredMessage]:
        header = QueryMessageHeader(
            topic=topic,
            key=key,
            max_num=count,
            begin_timestamp=begin_ms,
            end_timestamp=end_ms,
            unique_key_query=unique_key_query,
            with_deleted=with_deleted,
        )
        try:
            answer = await self._requests.ask(
                address, RequestCode.QUERY_MESSAGE, header, about=f"topic {topic!r}", timeout_ms=LOOKUP_TIMEOUT_MS
            )
        except BrokerRefused as error:
            if error.code == ResponseCode.QUERY_NOT_FOUND:
                return []
            raise
        return decode_messages(answer.body)[:LOOKUP_MESSAGES_MAX]


def _traced(message: StoredMessage) -> list[TraceRecord]:
    """Returns a trace message's records; none of a body that can't be read, which must not hide the others."""
    try:
        return read_trace(decompress(message.body, message.sys_flag))
    except WireError:
        return []
