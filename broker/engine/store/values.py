"""The store's arguments and results, and its settings. Plain data.

An offset is either a `queue_offset` (number of an entry in one queue) or a `commit_log_offset` (byte position in the
log); `max_offset` is one past the last entry, `min_offset` the first readable one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Literal

import msgspec

from remoting.wire.properties import Property, encode_properties
from remoting.wire.tags import tags_code

SEGMENT_BYTES = 256 * 1024 * 1024
QUEUE_FILE_ENTRIES = 300_000
# The key index has so many keys of one message at most.
KEYS_PER_MESSAGE_MAX = 64
# 1s 5s 10s 30s 1m … 10m 20m 30m 1h 2h: `messageDelayLevel` of RocketMQ, level 1 first.
DELAY_LEVELS_MS = (
    *(1_000, 5_000, 10_000, 30_000),
    *(minutes * 60_000 for minutes in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 30, 60, 120)),
)


@dataclass(frozen=True, slots=True)
class StoreConfig:
    """The settings of a store (a part of RocketMQ's `MessageStoreConfig`).

    `flush`: with "sync", `when_flushed` waits for the flush; with "async" it does not, and a power cut may lose the
    messages of the last `flush_interval_ms`. A killed process loses no message in either mode.

    `delay_levels_at` returns the delays that were in force when a commit-log offset was written, in ms, level 1 first.
    `segment_bytes` and `queue_file_entries` apply to a new store only; an existing one keeps its sizes.
    """

    flush: Literal["sync", "async"] = "sync"
    segment_bytes: int = SEGMENT_BYTES
    queue_file_entries: int = QUEUE_FILE_ENTRIES
    flush_interval_ms: int = 500
    # A checkpoint is written after so many bytes or so much time; a start after a kill verifies the log behind it.
    checkpoint_bytes: int = 16 * 1024 * 1024
    checkpoint_interval_ms: int = 5_000
    # A close flushes the indexes for so long at most: the whole stop may take 10 s, and the log can rebuild them.
    close_flush_max_s: float = 3.0
    delay_levels_at: Callable[[int], tuple[int, ...]] = lambda _: DELAY_LEVELS_MS


class MessageDraft(msgspec.Struct, kw_only=True, gc=False):
    """A message to be stored. `tags_code` is the hash of its tags; in the schedule and timer topics its due time in ms.

    `body` is stored unchanged. `properties_text` may end with 0x02 or not; a `__CRC32#` property in it is dropped.
    `keys` are the keys to index the message by; if None, the store reads them from `properties_text`.
    The IPv6 bits of `sys_flag` are set from the hosts.
    """

    topic: str
    queue_id: int
    body: bytes
    born_host: tuple[str, int]
    store_host: tuple[str, int]
    born_timestamp_ms: int
    flag: int = 0
    sys_flag: int = 0
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0
    properties_text: str = ""
    tags_code: int = 0
    keys: list[str] | None = None

    def set_properties(self, properties: Mapping[str, str]) -> None:
        """Encodes `properties`, and sets tags code and keys from them, so that the text need not be parsed for them."""
        self.properties_text = encode_properties(properties)
        self.tags_code = tags_code(properties.get(Property.TAGS))
        self.keys = index_keys(properties.get(Property.UNIQ_KEY), properties.get(Property.KEYS))


def index_keys(unique_key: str | None, words: str | None) -> list[str]:
    """Returns the keys to index a message by: its unique key, and each word of KEYS, at most 64 together."""
    keys = [unique_key] if unique_key else []
    if words:
        keys += words.split(None, KEYS_PER_MESSAGE_MAX)[: KEYS_PER_MESSAGE_MAX - 1]
    return keys


class Appended(msgspec.Struct, gc=False):
    """The offsets of a stored message. Pass `commit_log_offset + total_bytes` to `when_flushed`."""

    topic: str
    queue_id: int
    queue_offset: int
    commit_log_offset: int
    total_bytes: int
    store_timestamp_ms: int
    tags_code: int


class ReadStatus(Enum):
    """The status of a read, RocketMQ's `GetMessageStatus`; responses have the name as their remark."""

    FOUND = "FOUND"
    NO_MESSAGE_IN_QUEUE = "NO_MESSAGE_IN_QUEUE"
    NO_MATCHED_LOGIC_QUEUE = "NO_MATCHED_LOGIC_QUEUE"
    OFFSET_TOO_SMALL = "OFFSET_TOO_SMALL"
    OFFSET_OVERFLOW_ONE = "OFFSET_OVERFLOW_ONE"
    OFFSET_OVERFLOW_BADLY = "OFFSET_OVERFLOW_BADLY"
    NO_MATCHED_MESSAGE = "NO_MATCHED_MESSAGE"
    MESSAGE_WAS_REMOVING = "MESSAGE_WAS_REMOVING"
    OFFSET_RESET = "OFFSET_RESET"  # not returned by the store: for a pull after a tool reset the group's offset


class ReadResult(msgspec.Struct, gc=False):
    """The result of one read (RocketMQ's `GetMessageResult`). `body`: the stored messages one after the other."""

    status: ReadStatus
    next_begin_offset: int
    min_offset: int
    max_offset: int
    body: bytes = b""
    message_count: int = 0


class Boundary(Enum):
    """Selects the message that `offset_by_time` returns (RocketMQ's `BoundaryType`).

    LOWER: the first at or after the time. UPPER: the last at or before it.
    """

    LOWER = "LOWER"
    UPPER = "UPPER"


@dataclass(frozen=True, slots=True)
class Damage:
    """A range of the log that is not a sound record; `kept_as` is the file in `quarantine/` with a copy of it."""

    commit_log_offset: int
    byte_count: int
    reason: str
    kept_as: str | None = None


@dataclass(frozen=True, slots=True)
class RetentionState:
    """The content of `retention.json`: the log's first offset, and the next offsets of queues without messages.

    `next_offsets` is by topic and queue id. `log_end` was the log's end at the time of writing: it shows which topics
    were deleted later.
    """

    log_min_offset: int = 0
    log_end: int = 0
    next_offsets: dict[str, dict[str, int]] | None = None


@dataclass(frozen=True, slots=True)
class RecoveryReport:
    """The result of opening a store. `damages` were set aside; `torn` is an unfinished write at the log's end."""

    was_clean: bool
    verified_from: int
    end: int
    record_count: int
    torn: Damage | None = None
    damages: tuple[Damage, ...] = ()
    rebuilt_indexes: str | None = None
    duration_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """The result of `verify`, which checks all records and queue entries. `problems` has at most 1000 lines."""

    record_count: int
    byte_count: int
    damages: tuple[Damage, ...]
    problems: tuple[str, ...]

    @property
    def is_sound(self) -> bool:
        return not self.damages and not self.problems
