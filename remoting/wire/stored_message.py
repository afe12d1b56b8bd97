"""A message as brokers store it and send it to consumers (Java `MessageDecoder`, `MessageExtEncoder`).

    |  0 | 4 total size | 4 magic | 4 body CRC | 4 queue id | 4 flag | 8 queue offset | 8 commit-log offset |
    | 36 | 4 sysFlag | 8 born timestamp | 8 or 20 born host | 8 store timestamp | 8 or 20 store host |
    | 72 | 4 reconsume times | 8 prepared transaction offset | 4 body length | body |
    |    | 1 (V1) or 2 (V2) topic length | topic | 2 properties length | properties |

Byte positions hold where both hosts are IPv4, which sysFlag says. V2 is written only for topics of more than 127 bytes.
A store may end a record with `__CRC32#`, 20 bytes at the very end of the properties, over all bytes before them:
`properties_text` shows it, `properties` does not, since it belongs to the record and not to the message.
"""

from __future__ import annotations

import struct
from zlib import crc32

import msgspec

from remoting.wire import limits
from remoting.wire.errors import BodyError
from remoting.wire.message_id import Host, host_bytes, host_from_bytes, offset_message_id
from remoting.wire.properties import Property, decode_properties

MAGIC_V1 = 0xDAA320A7
MAGIC_V2 = 0xDAA320AB
MAGIC_BLANK = 0xCBD43194

BORN_HOST_V6_FLAG = 0x10
STORE_HOST_V6_FLAG = 0x20
TRANSACTION_MASK = 0xC
TRANSACTION_PREPARED = 0x4
TRANSACTION_COMMIT = 0x8
TRANSACTION_ROLLBACK = 0xC

CRC_MASK = 0x7FFFFFFF
# From here on a topic is written with a two-byte length.
V2_TOPIC_BYTES_MIN = 128
SYS_FLAG_POSITION = 36


def _head(born_bytes: int, store_bytes: int) -> struct.Struct:
    return struct.Struct(f">iIiiiqqiq{born_bytes}sq{store_bytes}siqi")


# By the two IPv6 bits of sysFlag: (sys_flag >> 4) & 3.
HEADS = (_head(8, 8), _head(20, 8), _head(8, 20), _head(20, 20))
_SYS_FLAG = struct.Struct(">i")
_SHORT = struct.Struct(">H")


class _Properties:
    """The decoded properties of a message, without the record's CRC; kept in its `__dict__` once they are asked for.

    `functools.cached_property` would take a lock each time on Python 3.11, and every consumed message pays for it.
    """

    def __get__(self, message: StoredMessage, _: type[StoredMessage]) -> dict[str, str]:
        properties = message.__dict__["properties"] = decode_properties(message.properties_text)
        properties.pop(Property.CRC32, None)
        return properties


class StoredMessage(msgspec.Struct, kw_only=True, dict=True):
    """`body` is as stored, so it may be compressed; `total_bytes` is the size of the record it came from."""

    topic: str
    queue_id: int
    queue_offset: int = 0
    commit_log_offset: int = 0
    flag: int = 0
    sys_flag: int = 0
    born_timestamp_ms: int = 0
    born_host: Host = ("0.0.0.0", 0)  # noqa: S104 - "no address yet", nothing binds to it
    store_timestamp_ms: int = 0
    store_host: Host = ("0.0.0.0", 0)  # noqa: S104
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0
    body: bytes = b""
    properties_text: str = ""
    body_crc: int = 0
    total_bytes: int = 0

    properties = _Properties()

    @property
    def unique_key(self) -> str | None:
        return self.properties.get(Property.UNIQ_KEY)

    @property
    def tags(self) -> str | None:
        return self.properties.get(Property.TAGS)

    @property
    def keys(self) -> list[str]:
        return self.properties.get(Property.KEYS, "").split()

    @property
    def offset_message_id(self) -> str:
        return offset_message_id(self.store_host, self.commit_log_offset)

    @property
    def message_id(self) -> str:
        """Returns the id that users know: the sender's unique key, else the broker's offset message id."""
        return self.unique_key or self.offset_message_id

    def __str__(self) -> str:
        place = f"{self.topic}/{self.queue_id}@{self.queue_offset}"
        return f"{place} id={self.message_id} body={len(self.body)}B times={self.reconsume_times}"


def decode_message(buffer: bytes | bytearray | memoryview, position: int = 0) -> StoredMessage:
    """Decodes the record that starts at `position`. Raises BodyError when it is cut off or no record.

    CRCs are not checked: clients leave that to the broker.
    """
    try:
        return _decode(buffer, position)
    except (struct.error, UnicodeDecodeError) as error:
        raise BodyError(f"no stored message at byte {position}: {error}") from error


def _decode(buffer: bytes | bytearray | memoryview, position: int) -> StoredMessage:
    (sys_flag,) = _SYS_FLAG.unpack_from(buffer, position + SYS_FLAG_POSITION)
    head = HEADS[(sys_flag >> 4) & 3]
    (
        total_bytes,
        magic,
        body_crc,
        queue_id,
        flag,
        queue_offset,
        commit_log_offset,
        sys_flag,
        born_timestamp_ms,
        born_host,
        store_timestamp_ms,
        store_host,
        reconsume_times,
        prepared_transaction_offset,
        body_bytes,
    ) = head.unpack_from(buffer, position)
    if magic not in (MAGIC_V1, MAGIC_V2):
        raise BodyError(f"no stored message at byte {position}: magic {magic:#010x}")
    end = position + total_bytes
    body_start = position + head.size
    topic_at = body_start + body_bytes
    if body_bytes < 0 or topic_at >= end or end > len(buffer):
        raise BodyError(f"stored message at byte {position} is cut off or lies about its size")
    if magic == MAGIC_V1:
        topic_start, topic_bytes = topic_at + 1, buffer[topic_at]
    else:
        topic_start, topic_bytes = topic_at + 2, _SHORT.unpack_from(buffer, topic_at)[0]
    properties_at = topic_start + topic_bytes
    (properties_bytes,) = _SHORT.unpack_from(buffer, properties_at)
    properties_start = properties_at + 2
    if properties_start + properties_bytes > end:
        raise BodyError(f"stored message at byte {position} is cut off or lies about its size")
    return StoredMessage(
        topic=str(buffer[topic_start:properties_at], "utf-8"),
        queue_id=queue_id,
        queue_offset=queue_offset,
        commit_log_offset=commit_log_offset,
        flag=flag,
        sys_flag=sys_flag,
        born_timestamp_ms=born_timestamp_ms,
        born_host=host_from_bytes(born_host),
        store_timestamp_ms=store_timestamp_ms,
        store_host=host_from_bytes(store_host),
        reconsume_times=reconsume_times,
        prepared_transaction_offset=prepared_transaction_offset,
        body=bytes(buffer[body_start:topic_at]),
        properties_text=str(buffer[properties_start : properties_start + properties_bytes], "utf-8", "replace"),
        body_crc=body_crc,
        total_bytes=total_bytes,
    )


def decode_messages(body: bytes | bytearray | memoryview) -> list[StoredMessage]:
    """Decodes all messages of a pull's response. Raises BodyError where one is cut off."""
    messages: list[StoredMessage] = []
    position = 0
    while position < len(body):
        message = decode_message(body, position)
        messages.append(message)
        position += message.total_bytes
    return messages


def encode_message(message: StoredMessage) -> bytes:
    """Encodes `message` as a record. Sizes, body CRC, magic and the IPv6 bits are computed, not taken from it.

    Raises BodyError on a topic or properties that the layout cannot hold.
    """
    born_host, store_host = host_bytes(message.born_host), host_bytes(message.store_host)
    sys_flag = message.sys_flag & ~(BORN_HOST_V6_FLAG | STORE_HOST_V6_FLAG)
    sys_flag |= BORN_HOST_V6_FLAG if len(born_host) > 8 else 0
    sys_flag |= STORE_HOST_V6_FLAG if len(store_host) > 8 else 0
    head = HEADS[(sys_flag >> 4) & 3]
    properties = message.properties_text.encode("utf-8", "replace")
    if len(properties) > limits.PROPERTIES_BYTES_MAX:
        raise BodyError(f"properties of {len(properties)} bytes; at most {limits.PROPERTIES_BYTES_MAX}")
    magic, topic = encode_topic(message.topic)
    tail = topic + _SHORT.pack(len(properties)) + properties
    return b"".join(
        (
            head.pack(
                head.size + len(message.body) + len(tail),
                magic,
                crc32(message.body) & CRC_MASK,
                message.queue_id,
                message.flag,
                message.queue_offset,
                message.commit_log_offset,
                sys_flag,
                message.born_timestamp_ms,
                born_host,
                message.store_timestamp_ms,
                store_host,
                message.reconsume_times,
                message.prepared_transaction_offset,
                len(message.body),
            ),
            message.body,
            tail,
        )
    )


def encode_topic(topic: str) -> tuple[int, bytes]:
    """Returns the magic, and the topic behind its length.

    Raises BodyError on an empty topic or one beyond 32767 bytes.
    """
    name = topic.encode("utf-8", "replace")
    if not 0 < len(name) <= 0x7FFF:
        raise BodyError(f"topic of {len(name)} bytes cannot be stored")
    if len(name) < V2_TOPIC_BYTES_MIN:
        return MAGIC_V1, bytes((len(name),)) + name
    return MAGIC_V2, _SHORT.pack(len(name)) + name
