"""The property string of a message: `name 0x01 value 0x02 name 0x01 value 0x02 …`.

Written with the last 0x02, as Java writes it since 5.2; read with or without. A segment
without 0x01, or with an empty name or value, is skipped, as every RocketMQ reader does.
Java: `MessageDecoder.string2messageProperties`, `messageProperties2String`, `MessageConst`.
"""

from __future__ import annotations

from collections.abc import Mapping

NAME_END = "\x01"
VALUE_END = "\x02"


class Property:
    """Names that RocketMQ gives a meaning (`MessageConst`)."""

    KEYS = "KEYS"
    TAGS = "TAGS"
    WAIT = "WAIT"
    DELAY = "DELAY"
    RETRY_TOPIC = "RETRY_TOPIC"
    REAL_TOPIC = "REAL_TOPIC"
    REAL_QID = "REAL_QID"
    UNIQ_KEY = "UNIQ_KEY"
    ORIGIN_MESSAGE_ID = "ORIGIN_MESSAGE_ID"
    RECONSUME_TIME = "RECONSUME_TIME"
    MAX_RECONSUME_TIMES = "MAX_RECONSUME_TIMES"
    MIN_OFFSET = "MIN_OFFSET"
    MAX_OFFSET = "MAX_OFFSET"
    CONSUME_START_TIME = "CONSUME_START_TIME"
    CLUSTER = "CLUSTER"
    MSG_REGION = "MSG_REGION"
    TRACE_ON = "TRACE_ON"
    TRACE_CONTEXT = "TRACE_CONTEXT"
    TRAN_MSG = "TRAN_MSG"
    PGROUP = "PGROUP"
    TRANSACTION_ID = "__transactionId__"
    TRAN_PREPARED_QUEUE_OFFSET = "TRAN_PREPARED_QUEUE_OFFSET"
    TRANSACTION_CHECK_TIMES = "TRANSACTION_CHECK_TIMES"
    CHECK_IMMUNITY_TIME_IN_SECONDS = "CHECK_IMMUNITY_TIME_IN_SECONDS"
    SHARDING_KEY = "__SHARDINGKEY"
    INSTANCE_ID = "INSTANCE_ID"
    CORRELATION_ID = "CORRELATION_ID"
    REPLY_TO_CLIENT = "REPLY_TO_CLIENT"
    TTL = "TTL"
    MSG_TYPE = "MSG_TYPE"
    ARRIVE_TIME = "ARRIVE_TIME"
    PUSH_REPLY_TIME = "PUSH_REPLY_TIME"
    POP_CK = "POP_CK"
    POP_CK_OFFSET = "POP_CK_OFFSET"
    FIRST_POP_TIME = "1ST_POP_TIME"
    TIMER_DELAY_SEC = "TIMER_DELAY_SEC"
    TIMER_DELAY_MS = "TIMER_DELAY_MS"
    TIMER_DELIVER_MS = "TIMER_DELIVER_MS"
    TIMER_OUT_MS = "TIMER_OUT_MS"
    TIMER_ENQUEUE_MS = "TIMER_ENQUEUE_MS"
    TIMER_DEQUEUE_MS = "TIMER_DEQUEUE_MS"
    TIMER_DEL_UNIQKEY = "TIMER_DEL_UNIQKEY"
    BORN_HOST = "__BORNHOST"
    BORN_TIMESTAMP = "BORN_TIMESTAMP"
    DLQ_ORIGIN_TOPIC = "DLQ_ORIGIN_TOPIC"
    DLQ_ORIGIN_MESSAGE_ID = "DLQ_ORIGIN_MESSAGE_ID"
    INNER_NUM = "INNER_NUM"
    CRC32 = "__CRC32#"
    # Ours, of a retry or a dead letter: why its last attempt failed (exception class, first line), in which listener,
    # at which member, and which attempt that was, from 1.
    FAILURE_CLASS = "__FAILURE_CLASS"
    FAILURE_TEXT = "__FAILURE_TEXT"
    FAILURE_LISTENER = "__FAILURE_LISTENER"
    FAILURE_MEMBER = "__FAILURE_MEMBER"
    FAILURE_ATTEMPT = "__FAILURE_ATTEMPT"
    # Ours, of a replayed dead letter: which replay sent it, by its token, and which entry of its ledger.
    REPLAY_JOB = "__REPLAY_JOB"
    REPLAY_ENTRY = "__REPLAY_ENTRY"


# Names that RocketMQ gives a meaning: users set them by parameters, or not at all (`MessageConst.STRING_HASH_SET`).
RESERVED_PROPERTIES = frozenset(
    value for name, value in vars(Property).items() if not name.startswith("_") and isinstance(value, str)
) - {Property.SHARDING_KEY}


def decode_properties(text: str) -> dict[str, str]:
    """Returns the properties in `text`; of one name the last counts. Never raises."""
    segments = [segment.partition(NAME_END) for segment in text.split(VALUE_END)]
    return {name: value for name, _, value in segments if name and value}


def encode_properties(properties: Mapping[str, str]) -> str:
    """Encodes `properties` as text that ends with 0x02 unless it is empty. Values hold neither 0x01 nor 0x02."""
    return "".join([f"{name}\x01{value}\x02" for name, value in properties.items()])
