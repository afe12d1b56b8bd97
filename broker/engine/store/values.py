"""The values that go into and come out of the store, and its settings. Plain data.

An `offset` is either a `queue_offset` (number of an entry in one queue) or a `commit_log_offset` (byte position in the
log); `max_offset` is one past the last, `min_offset` the first readable.
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
# One message may bring that many keys; more are not indexed.
KEYS_PER_MESSAGE_MAX = 64
# 1s 5s 10s 30s 1m … 10m 20m 30m 1h 2h: `messageDelayLevel` of RocketMQ, level 1 first.
DELAY_LEVELS_MS = (
    *(1_000, 5_000, 10_000, 30_000),
    *(minutes * 60_000 for minutes in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 30, 60, 120)),
)


@dataclass(frozen=True, slots=True)
class StoreConfig:
    """`flush`: "sync" makes `when_flushed` wait for the disk; "async" does not, and a power cut may take the last
    `flush_interval_ms`. A killed process loses nothing in either mode.

    `delay_levels_at`: how long each delay level waited when that place of the commit log was written, level 1 first.
    `segment_bytes` and `queue_file_entries` count for a new store only; an existing one keeps those it was made with.
    """

    flush: Literal["sync", "async"] = "sync"
    segment_bytes: int = SEGMENT_BYTES
    queue_file_entries: int = QUEUE_FILE_ENTRIES
    flush_interval_ms: int = 500
    # A checkpoint bounds what a start after a kill verifies: so many bytes, or so much time, of appends.
    checkpoint_bytes: int = 16 * 1024 * 1024
    checkpoint_interval_ms: int = 5_000
    # How long a close flushes the indexes, which the log can make again: who stops the broker waits 10 s in all.
    close_flush_max_s: float = 3.0
    delay_levels_at: Callable[[int], tuple[int, ...]] = lambda _: DELAY_LEVELS_MS


class MessageDraft(msgspec.Struct, kw_only=True, gc=False):
    """Holds a message to be stored. `tags_code` is the hash of its tags, for the schedule topic its due time in ms.

    `body` is stored as it is. `properties_text` may end with 0x02 or not; an old `__CRC32#` in it is dropped.
    `keys` are the words that the message can be found by; None has the store look for them in `properties_text`.
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
        """Encodes `properties`, and takes tags code and keys from them, so that nobody has to parse them again."""
        self.properties_text = encode_properties(properties)
        self.tags_code = tags_code(properties.get(Property.TAGS))
        self.keys = index_keys(properties.get(Property.UNIQ_KEY), properties.get(Property.KEYS))


def index_keys(unique_key: str | None, words: str | None) -> list[str]:
    """Returns what a message is indexed by: its unique key, and each word of KEYS, at most 64 together."""
    keys = [unique_key] if unique_key else []
    if words:
        keys += words.split(None, KEYS_PER_MESSAGE_MAX)[: KEYS_PER_MESSAGE_MAX - 1]
    return keys


class Appended(msgspec.Struct, gc=False):
    """Where a message was stored. `commit_log_offset + total_bytes` is what `when_flushed` wants to know."""

    topic: str
    queue_id: int
    queue_offset: int
    commit_log_offset: int
    total_bytes: int
    store_timestamp_ms: int
    tags_code: int


class ReadStatus(Enum):
    """RocketMQ's `GetMessageStatus`; the names travel as remarks."""

    FOUND = "FOUND"
    NO_MESSAGE_IN_QUEUE = "NO_MESSAGE_IN_QUEUE"
    NO_MATCHED_LOGIC_QUEUE = "NO_MATCHED_LOGIC_QUEUE"
    OFFSET_TOO_SMALL = "OFFSET_TOO_SMALL"
    OFFSET_OVERFLOW_ONE = "OFFSET_OVERFLOW_ONE"
    OFFSET_OVERFLOW_BADLY = "OFFSET_OVERFLOW_BADLY"
    NO_MATCHED_MESSAGE = "NO_MATCHED_MESSAGE"
    MESSAGE_WAS_REMOVING = "MESSAGE_WAS_REMOVING"
    OFFSET_RESET = "OFFSET_RESET"  # never the store's answer: a tool moved the group


class ReadResult(msgspec.Struct, gc=False):
    """The answer to one pull. `body` is the stored messages one after the other, empty unless FOUND."""

    status: ReadStatus
    next_begin_offset: int
    min_offset: int
    max_offset: int
    body: bytes = b""
    message_count: int = 0


class Boundary(Enum):
    """Which message `offset_by_time` means: the first at or after the time, or the last at or before it."""

    LOWER = "LOWER"
    UPPER = "UPPER"


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes of the log that are no record, from `commit_log_offset` on; `kept_as` is the file they were copied to."""

    commit_log_offset: int
    byte_count: int
    reason: str
    kept_as: str | None = None


@dataclass(frozen=True, slots=True)
class RetentionState:
    """What `retention.json` says: where the log begins, and by topic and queue id where emptied queues go on.

    `log_end`: of the log when it was written, to tell which topics were deleted since.
    """

    log_min_offset: int = 0
    log_end: int = 0
    next_offsets: dict[str, dict[str, int]] | None = None


@dataclass(frozen=True, slots=True)
class RecoveryReport:
    """What opening the store found. `damages` were set aside; `torn` (the last one) is an unfinished write."""

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
    """What `verify` found: every record and index entry looked at. `problems` are one line each, at most 1000."""

    record_count: int
    byte_count: int
    damages: tuple[Damage, ...]
    problems: tuple[str, ...]

    @property
    def is_sound(self) -> bool:
        return not self.damages and not self.problems
