"""SEND_MESSAGE (10), SEND_MESSAGE_V2 (310), SEND_BATCH_MESSAGE (320): RocketMQ's `SendMessageProcessor`.

The checks are in RocketMQ 5's order, with its response codes. The request code decides the format of the header, the
header's batch flag that of the body.

The answer is sent when the message is as safe as the store's flush mode promises; a message with the property
WAIT=false is answered before the flush. A refused message is not stored; one that could not be flushed may be.
"""

from __future__ import annotations

from broker.engine.config import BrokerConfig
from broker.engine.groups.group_configs import Groups
from broker.engine.groups.queue_locks import QueueLocks
from broker.engine.schedule.entering import delay_level, wants_timer
from broker.engine.sending.accepting import Accepting, Answer
from broker.engine.sending.flush_waiting import FlushTimedOut
from broker.engine.sending.retry import DLQ_DELAY_OF_SEND, DLQ_QUEUE_NUMS, is_dead_on_send, retry_limit
from broker.engine.sending.send_target import SendTarget
from broker.engine.serving.requests import Request
from broker.engine.store.values import Appended, MessageDraft
from broker.engine.topics.topic_configs import Topics
from broker.engine.transactions.half import is_half
from broker.engine.transactions.transactions import Transactions
from remoting.wire.batch import decode_batch
from remoting.wire.bodies.topics import PERM_READ_WRITE, TopicConfig
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Body, response
from remoting.wire.errors import BodyError, MessageError
from remoting.wire.headers.send import SendMessageHeader, SendMessageHeaderV2
from remoting.wire.headers.typed import read_header
from remoting.wire.message_id import UniqueKeyFactory, offset_message_id
from remoting.wire.names import RETRY_PREFIX, dlq_topic, is_retry_topic
from remoting.wire.properties import Property, decode_properties
from remoting.wire.recall_handle import recall_handle
from remoting.wire.tags import tags_code

REGION = "DefaultRegion"
_MULTI_TAGS_FLAG = 0x2


class SendMessage:
    """Processor of the three send requests."""

    def __init__(
        self,
        *,
        topics: Topics,
        groups: Groups,
        accepting: Accepting,
        unique_keys: UniqueKeyFactory,
        config: BrokerConfig,
        locks: QueueLocks,
        transactions: Transactions,
    ) -> None:
        self._topics = topics
        self._target = SendTarget(topics, config)
        self._groups = groups
        self._accepting = accepting
        self._unique_keys = unique_keys
        self._config = config
        self._locks = locks
        self._transactions = transactions

    def __call__(self, request: Request) -> None:
        """Submits the messages of the request; the answer is sent at the end of the read, or after the flush.

        Raises WireError with the code to answer.
        """
        command = request.command
        header: SendMessageHeader
        if command.code == RequestCode.SEND_MESSAGE:
            header = read_header(SendMessageHeader, command.ext_fields)
        else:
            header = read_header(SendMessageHeaderV2, command.ext_fields)
        topic = self._target.resolve(header)
        properties = decode_properties(header.properties or "")
        properties.pop(Property.POP_CK, None)
        if header.batch:
            self._send_batch(request, header, properties)
        else:
            self._send_one(request, header, properties, topic)

    # one message

    def _send_one(
        self, request: Request, header: SendMessageHeader, properties: dict[str, str], topic: TopicConfig
    ) -> None:
        name, queue_id = header.topic, header.queue_id
        if not request.command.body:
            raise MessageError("the message body is empty", ResponseCode.MESSAGE_ILLEGAL)
        if is_retry_topic(name) and self._is_dead(header, request.command.version):
            name, queue_id = dlq_topic(name.removeprefix(RETRY_PREFIX)), 0
            self._topics.create_for_send_back(name, DLQ_QUEUE_NUMS, PERM_READ_WRITE)
            properties[Property.DELAY] = DLQ_DELAY_OF_SEND
        if Property.UNIQ_KEY not in properties:
            properties[Property.UNIQ_KEY] = self._unique_keys.next()
        properties[Property.MSG_REGION] = REGION
        properties[Property.TRACE_ON] = "true"
        properties[Property.CLUSTER] = self._config.cluster
        draft = self._draft(request, header, name, queue_id, header.flag, request.command.body)
        if topic.topic_filter_type == "MULTI_TAG":
            draft.sys_flag |= _MULTI_TAGS_FLAG
        answer = self._answering(request, properties, queue_id)
        waits = _waits(request, properties)
        if is_half(properties, draft.reconsume_times):
            answer = self._transactions.begin(draft, properties, answer)
            self._accepting.submit_batch([draft], waits=waits, answer=answer)
        else:
            self._accepting.submit(draft, properties, waits=waits, answer=answer)

    def _is_dead(self, header: SendMessageHeader, client_version: int) -> bool:
        """Returns whether a retry that a consumer sends itself becomes a dead letter.

        An ordered group retries in place: what it sends to its retry topic is always a dead letter. Raises MessageError
        for an unknown group.
        """
        name = header.topic.removeprefix(RETRY_PREFIX)
        group = self._groups.find(name)
        if group is None:
            raise MessageError(f"subscription group not exist, {name}", ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST)
        limit = retry_limit(group, header.max_reconsume_times, client_version)
        return is_dead_on_send(header.reconsume_times or 0, limit) or self._locks.has_unexpired(name)

    # a batch

    def _send_batch(self, request: Request, header: SendMessageHeader, properties: dict[str, str]) -> None:
        """Submits a batch: all of its messages or none, side by side in one queue.

        The properties of the batch itself are not added to its messages.
        """
        if is_retry_topic(header.topic):
            raise MessageError(
                f"batch request does not support retry group {header.topic}", ResponseCode.MESSAGE_ILLEGAL
            )
        body = request.command.body
        is_later = delay_level(properties) > 0 or wants_timer(properties)
        if is_later or properties.get(Property.TRAN_MSG, "").lower() == "true":
            raise MessageError("a batch can be neither delayed nor transactional", ResponseCode.MESSAGE_ILLEGAL)
        self._accepting.check_size(len(body), header.properties or "")
        try:
            entries = decode_batch(body)
        except BodyError as error:
            raise MessageError(str(error), ResponseCode.MESSAGE_ILLEGAL) from error
        if not entries:
            raise MessageError("the batch holds no message", ResponseCode.MESSAGE_ILLEGAL)
        drafts = []
        for entry in entries:
            draft = self._draft(request, header, header.topic, header.queue_id, entry.flag, entry.body)
            draft.properties_text = entry.properties_text
            draft.tags_code = tags_code(decode_properties(entry.properties_text).get(Property.TAGS))
            drafts.append(draft)
        answer = self._answering(request, properties, header.queue_id)
        self._accepting.submit_batch(drafts, waits=_waits(request, properties), answer=answer)

    # both

    def _draft(
        self, request: Request, header: SendMessageHeader, topic: str, queue_id: int, flag: int, body: Body
    ) -> MessageDraft:
        return MessageDraft(
            topic=topic,
            queue_id=queue_id,
            body=bytes(body),
            born_host=request.connection.peer_host,
            store_host=self._config.store_host,
            born_timestamp_ms=header.born_timestamp,
            flag=flag,
            sys_flag=header.sys_flag,
            reconsume_times=header.reconsume_times or 0,
        )

    def _answering(self, request: Request, properties: dict[str, str], queue_id: int) -> Answer:
        """Returns the callback that answers the request.

        The answer names the queue that was asked for, even where the message waits in a schedule topic first.
        `properties`: those that are stored, which say whether the message waits as a timer and can be recalled.
        """
        unique_key = properties.get(Property.UNIQ_KEY)
        command, connection, store_host = request.command, request.connection, self._config.store_host

        def answer(result: list[Appended] | MessageError) -> None:
            if command.is_oneway:
                return
            code = ResponseCode.SUCCESS
            if isinstance(result, FlushTimedOut):
                code, result = ResponseCode.FLUSH_DISK_TIMEOUT, result.appended
            if isinstance(result, MessageError):
                connection.send(response(command, result.response_code, str(result)))
                return
            fields = {
                "msgId": ",".join([offset_message_id(store_host, one.commit_log_offset) for one in result]),
                "queueId": str(queue_id),
                "queueOffset": str(result[0].queue_offset),
                "MSG_REGION": REGION,
                "TRACE_ON": "true",
            }
            if unique_key is not None:
                fields["transactionId"] = unique_key
            if Property.TIMER_OUT_MS in properties:
                handle = recall_handle(properties, self._config.name)
                if handle is not None:
                    fields["recallHandle"] = handle
            connection.send(response(command, code, ext_fields=fields))

        return answer


def _waits(request: Request, properties: dict[str, str]) -> bool:
    """Returns whether the sender waits for the flush."""
    return properties.get(Property.WAIT, "true").lower() == "true" and not request.command.is_oneway
