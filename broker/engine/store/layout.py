"""The byte layout of commit-log records and consume-queue entries; packs and checks them.

    record          the stored message of `remoting.wire.stored_message`; its properties always end with
                    | `__CRC32#` | 0x01 | 10 decimal digits, least significant first | 0x02 |     20 bytes
                    over all bytes of the record before them, & 0x7fffffff (RocketMQ's enabledAppendPropCRC)
    blank           | 4 bytes left in the segment | 4 magic |      ends a segment; the next record is in the next one
    queue entry     | 8 commit-log offset | 4 record size | 8 tags code |
    hole            a queue entry of size 0x7fffffff: no message; its offset is that of the next sound record

Any flipped bit of a record is detected: the CRC covers all bytes before it, and its own bytes are compared whole.
"""

from __future__ import annotations

import re
import struct
from zlib import crc32

import msgspec

from broker.engine.store.errors import RecordRefused
from broker.engine.store.values import MessageDraft
from remoting.wire import limits
from remoting.wire.errors import BodyError
from remoting.wire.message_id import host_bytes
from remoting.wire.stored_message import (
    BORN_HOST_V6_FLAG,
    CRC_MASK,
    HEADS,
    MAGIC_BLANK,
    MAGIC_V1,
    MAGIC_V2,
    STORE_HOST_V6_FLAG,
    SYS_FLAG_POSITION,
)

QUEUE_ENTRY = struct.Struct(">qiq")
QUEUE_ENTRY_BYTES = QUEUE_ENTRY.size
HOLE_BYTES = 0x7FFFFFFF

BLANK = struct.Struct(">iI")
# Size, magic and commit-log offset of a record: enough to recognise the record that a queue entry points to.
RECORD_START = struct.Struct(">iI20xq")
# The bytes that the magics of all records start with; a scan searches for them.
MAGIC_PREFIX = MAGIC_V1.to_bytes(4, "big")[:3]
MAGIC_POSITION = 4

_CRC_START = b"__CRC32#\x01"
CRC_BYTES = len(_CRC_START) + 11
_OLD_CRC = re.compile("(?:^|(?<=\x02))__CRC32#\x01[^\x02]*(?:\x02|$)")

_SYS_FLAG = struct.Struct(">i")
_TIMESTAMP = struct.Struct(">q")
_SHORT = struct.Struct(">H")
_V6_FLAGS = BORN_HOST_V6_FLAG | STORE_HOST_V6_FLAG
_STORE_TIMESTAMP_POSITION = 56
_V6_EXTRA_BYTES = 12
# A record with a topic of one byte, no body, and no property but the CRC.
RECORD_BYTES_MIN = HEADS[0].size + 2 + _SHORT.size + CRC_BYTES


def file_name(offset: int) -> str:
    """Returns the name of a segment or index file: the 20-digit offset of its first byte."""
    return f"{offset:020d}"


def hash_topic(topic: str) -> int:
    """Returns the start value for the CRC32 of a key, whose result is then that of `topic#key`."""
    return crc32(topic.encode("utf-8", "replace") + b"#")


def stored_properties(text: str) -> bytes:
    """Returns `properties_text` of a draft as it is stored before the CRC property: empty, or ending with 0x02.

    Drops the CRC property that a copied message has from its former record. Raises RecordRefused beyond 32767 bytes.
    """
    if "__CRC32#" in text:
        text = _OLD_CRC.sub("", text)
    properties = text.encode("utf-8", "replace")
    if properties and properties[-1] != 2:
        properties += b"\x02"
    if len(properties) + CRC_BYTES > limits.PROPERTIES_BYTES_MAX:
        most = limits.PROPERTIES_BYTES_MAX - CRC_BYTES
        raise RecordRefused(f"message properties of {len(properties)} bytes; at most {most} can be stored")
    return properties


def record_bytes(draft: MessageDraft, topic_part: bytes, properties: bytes) -> int:
    """Returns the size of the record that `pack_record` will return. Raises RecordRefused for an illegal host."""
    try:
        hosts = len(host_bytes(draft.born_host)) + len(host_bytes(draft.store_host))
    except BodyError as error:
        raise RecordRefused(str(error)) from error
    return HEADS[0].size - 16 + hosts + len(draft.body) + len(topic_part) + 2 + len(properties) + CRC_BYTES


def pack_record(
    draft: MessageDraft,
    magic: int,
    topic_part: bytes,
    properties: bytes,
    *,
    total_bytes: int,
    queue_offset: int,
    commit_log_offset: int,
    store_timestamp_ms: int,
) -> bytes:
    """Returns one record, CRC included. Raises RecordRefused when a number does not fit its field."""
    born_host, store_host = host_bytes(draft.born_host), host_bytes(draft.store_host)
    sys_flag = draft.sys_flag & ~_V6_FLAGS
    if len(born_host) > 8:
        sys_flag |= BORN_HOST_V6_FLAG
    if len(store_host) > 8:
        sys_flag |= STORE_HOST_V6_FLAG
    body = draft.body
    try:
        head = HEADS[(sys_flag >> 4) & 3].pack(
            total_bytes,
            magic,
            crc32(body) & CRC_MASK,
            draft.queue_id,
            draft.flag,
            queue_offset,
            commit_log_offset,
            sys_flag,
            draft.born_timestamp_ms,
            born_host,
            store_timestamp_ms,
            store_host,
            draft.reconsume_times,
            draft.prepared_transaction_offset,
            len(body),
        )
    except struct.error as error:
        raise RecordRefused(f"a field of the message does not fit the record: {error}") from error
    record = b"".join((head, body, topic_part, _SHORT.pack(len(properties) + CRC_BYTES), properties))
    return record + crc_property(record)


def crc_property(record: bytes | memoryview) -> bytes:
    """Returns the CRC property, the last 20 bytes of a record, for its other bytes `record`."""
    return _CRC_START + f"{crc32(record) & CRC_MASK:010d}"[::-1].encode() + b"\x02"


def sound_record_bytes(view: memoryview, position: int, commit_log_offset: int) -> int:
    """Returns the size of the record at `position` of a segment, 0 when there is none or its CRC does not match."""
    if position + RECORD_BYTES_MIN > len(view):
        return 0
    total, magic, own_offset = RECORD_START.unpack_from(view, position)
    if magic not in (MAGIC_V1, MAGIC_V2) or own_offset != commit_log_offset:
        return 0
    end = position + total
    if total < RECORD_BYTES_MIN or end > len(view):
        return 0
    crc_at = end - CRC_BYTES
    if view[crc_at:end] != crc_property(view[position:crc_at]):
        return 0
    return int(total)


def starts_record(start: bytes, commit_log_offset: int) -> bool:
    """Tells whether `start` has the magic, offset and a possible size of the record at that offset; checks no CRC."""
    if len(start) < RECORD_BYTES_MIN:
        return False
    total, magic, own_offset = RECORD_START.unpack_from(start)
    return magic in (MAGIC_V1, MAGIC_V2) and own_offset == commit_log_offset and total >= RECORD_BYTES_MIN


def is_blank(view: memoryview, position: int) -> bool:
    """Tells whether the segment ends at `position`, with a blank or with no space for one."""
    left = len(view) - position
    if left < BLANK.size:
        return True
    return BLANK.unpack_from(view, position) == (left, MAGIC_BLANK)


def store_timestamp(view: memoryview | bytes, position: int) -> int:
    """Returns the store timestamp of the record at `position`, in ms."""
    (sys_flag,) = _SYS_FLAG.unpack_from(view, position + SYS_FLAG_POSITION)
    extra = _V6_EXTRA_BYTES if sys_flag & BORN_HOST_V6_FLAG else 0
    return int(_TIMESTAMP.unpack_from(view, position + _STORE_TIMESTAMP_POSITION + extra)[0])


class RecordFields(msgspec.Struct, gc=False):
    """The fields of a record that the indexes are derived from."""

    topic: str
    queue_id: int
    queue_offset: int
    commit_log_offset: int
    total_bytes: int
    sys_flag: int
    store_timestamp_ms: int
    prepared_transaction_offset: int
    properties_text: str


def read_record_fields(view: memoryview, position: int) -> RecordFields:
    """Reads the fields of a record that `sound_record_bytes` has checked."""
    (sys_flag,) = _SYS_FLAG.unpack_from(view, position + SYS_FLAG_POSITION)
    head = HEADS[(sys_flag >> 4) & 3]
    fields = head.unpack_from(view, position)
    topic_at = position + head.size + fields[14]
    if fields[1] == MAGIC_V1:
        topic_start = topic_at + 1
        topic_end = topic_start + view[topic_at]
    else:
        topic_start = topic_at + 2
        topic_end = topic_start + _SHORT.unpack_from(view, topic_at)[0]
    return RecordFields(
        topic=str(view[topic_start:topic_end], "utf-8", "replace"),
        queue_id=fields[3],
        queue_offset=fields[5],
        commit_log_offset=fields[6],
        total_bytes=fields[0],
        sys_flag=sys_flag,
        store_timestamp_ms=fields[10],
        prepared_transaction_offset=fields[13],
        properties_text=str(view[topic_end + 2 : position + fields[0]], "utf-8", "replace"),
    )
