"""What a message of a `%DLQ%` topic says of itself. Pure.

A broker moves a message there with the properties it had as a retry: RETRY_TOPIC names the topic it was first sent to,
ORIGIN_MESSAGE_ID its id there; brokers of the 5 line write both once more (DLQ_ORIGIN_TOPIC, DLQ_ORIGIN_MESSAGE_ID).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256

from consumer.models import MessageFailure
from mqadmin.clusters.models import NAME_CHARS_MAX
from mqadmin.clusters.moments import moment_or_none
from mqadmin.deadletters.models import (
    FAILURE_CLASS_CHARS_MAX,
    FAILURE_TEXT_CHARS_MAX,
    HOST_CHARS_MAX,
    IDENTITY_CHARS,
    KEYS_CHARS_MAX,
    SHAPE_CHARS_MAX,
)
from mqadmin.deadletters.shapes import shape_of
from remoting.wire.compression import decompress
from remoting.wire.errors import WireError
from remoting.wire.properties import Property
from remoting.wire.stored_message import StoredMessage

# Stands for NUL, which PostgreSQL keeps in no text.
NUL_MARK = "\N{SYMBOL FOR NULL}"
UNREADABLE = "unreadable"
# What a primary key has at most.
ENTRY_DIGITS_MAX = 18
# What differs from message to message in the text of one error.
_VARYING = re.compile(r"0x[0-9a-fA-F]+|[0-9a-fA-F]{8,}|\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadMessage:
    """The fields of a `DeadLetter`, those of its `Failure`, and what a `KeptMessage` keeps.

    `attempt_count`: as the broker counts, with the attempt that failed last. `body` is plain; None where it is larger
    than what is kept, or cannot be decompressed.
    """

    queue_offset: int
    dead_at: datetime
    message_id: str
    offset_message_id: str
    origin_topic: str
    tag: str
    keys: str
    born_at: datetime | None
    born_host: str
    attempt_count: int
    failure_class: str
    failure_text: str
    failed_member: str
    failed_listener: str
    shape: str
    body_bytes: int
    body: bytes | None
    properties: dict[str, str]

    @property
    def failure_identity(self) -> str:
        """Returns the digest of what dead letters of one failure have in common."""
        text = _VARYING.sub("#", self.failure_text)
        parts = (self.origin_topic, self.tag, str(self.attempt_count), self.failure_class, text, self.shape)
        return sha256("\0".join(parts).encode()).hexdigest()[:IDENTITY_CHARS]

    def because_of(self, why: MessageFailure) -> DeadMessage:
        """Returns the message with the reason that the runtime kept of its latest failure."""
        return replace(
            self,
            failure_class=why.exception,
            failure_text=why.text,
            failed_member=why.member,
            failed_listener=why.listener,
        )

    @property
    def replay(self) -> tuple[str, int] | None:
        """Returns the replay that had sent it, by its token, and the entry of its ledger; None where none had."""
        return replay_of(self.properties)


def replay_of(properties: Mapping[str, str]) -> tuple[str, int] | None:
    """Returns the replay that sent a message with these properties, and its entry; None where none did."""
    token, entry = properties.get(Property.REPLAY_JOB, ""), properties.get(Property.REPLAY_ENTRY, "")
    is_one = token and entry.isascii() and entry.isdigit() and len(entry) <= ENTRY_DIGITS_MAX
    return (token, int(entry)) if is_one else None


def read_dead_message(message: StoredMessage, *, kept_bytes_max: int) -> DeadMessage:
    """Never raises: a body that cannot be read is said to be unreadable; a message left out would be lost to people."""
    properties = {_text(name): _text(value) for name, value in message.properties.items()}
    body, shape = _plain_body(message)
    return DeadMessage(
        queue_offset=message.queue_offset,
        dead_at=moment_or_none(message.store_timestamp_ms) or datetime.fromtimestamp(0, UTC),
        message_id=_text(message.message_id, NAME_CHARS_MAX),
        offset_message_id=message.offset_message_id,
        origin_topic=_text(_first(properties, Property.RETRY_TOPIC, Property.DLQ_ORIGIN_TOPIC), NAME_CHARS_MAX),
        tag=_text(message.tags or "", NAME_CHARS_MAX),
        keys=_keys(message),
        born_at=moment_or_none(message.born_timestamp_ms),
        born_host=":".join(str(part) for part in message.born_host)[:HOST_CHARS_MAX],
        attempt_count=message.reconsume_times,
        failure_class=properties.get(Property.FAILURE_CLASS, "")[:FAILURE_CLASS_CHARS_MAX],
        failure_text=properties.get(Property.FAILURE_TEXT, "")[:FAILURE_TEXT_CHARS_MAX],
        failed_member=properties.get(Property.FAILURE_MEMBER, "")[:NAME_CHARS_MAX],
        failed_listener=properties.get(Property.FAILURE_LISTENER, "")[:NAME_CHARS_MAX],
        shape=shape[:SHAPE_CHARS_MAX],
        body_bytes=len(body) if body is not None else len(message.body),
        body=body if body is not None and len(body) <= kept_bytes_max else None,
        properties=properties,
    )


def _plain_body(message: StoredMessage) -> tuple[bytes | None, str]:
    """Returns the body, not compressed, and its shape."""
    try:
        body = decompress(message.body, message.sys_flag)
    except WireError:
        return None, UNREADABLE
    return body, shape_of(body)


def _keys(message: StoredMessage) -> str:
    text = _text(" ".join(message.keys))
    return f" {text[: KEYS_CHARS_MAX - 2]} " if text else ""


def _first(properties: Mapping[str, str], *names: str) -> str:
    return next((properties[name] for name in names if properties.get(name)), "")


def _text(text: str, chars_max: int | None = None) -> str:
    return text.replace("\0", NUL_MARK)[:chars_max]
