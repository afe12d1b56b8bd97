"""Why a message failed: what a consumer of ours tells with a send-back, and the retry and the dead letter carry.

In CONSUMER_SEND_MSG_BACK these are extra fields, which Apache's broker ignores and ours makes properties of the retry;
on a copy that a member sends itself they are properties from the start. Whoever reads or stores them bounds them: texts
are cut and lose their control characters, two of which end names and values of properties.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass

import msgspec

from remoting.wire.properties import Property

# Characters of each text. Together far below what properties may take (32,767 bytes), also in UTF-8.
CLASS_CHARS_MAX = 128
TEXT_CHARS_MAX = 256
NAME_CHARS_MAX = 255
ATTEMPT_MAX = 2**31 - 1

# The property of a member's running info, and how many failures are read of it.
LATEST_FAILURES = "MQADMIN_LATEST_FAILURES"
LATEST_READ_MAX = 100

FAILURE_PROPERTIES = (
    Property.FAILURE_CLASS,
    Property.FAILURE_TEXT,
    Property.FAILURE_LISTENER,
    Property.FAILURE_MEMBER,
    Property.FAILURE_ATTEMPT,
)


@dataclass(frozen=True, slots=True)
class FailureReason:
    """`exception` is the class with its module, `text` the first line of its message, `listener` the function's name,
    `member` the client id, `attempt` which attempt failed, from 1. Longer texts are cut."""

    exception: str
    text: str = ""
    listener: str = ""
    member: str = ""
    attempt: int = 1

    def __post_init__(self) -> None:
        for name, chars_max in (
            ("exception", CLASS_CHARS_MAX),
            ("text", TEXT_CHARS_MAX),
            ("listener", NAME_CHARS_MAX),
            ("member", NAME_CHARS_MAX),
        ):
            object.__setattr__(self, name, _one_line(getattr(self, name), chars_max))
        object.__setattr__(self, "attempt", min(max(1, self.attempt), ATTEMPT_MAX))

    def write(self, properties: MutableMapping[str, str]) -> None:
        """Puts the reason in the place of that of an earlier attempt."""
        remove_reason(properties)
        values = (self.exception, self.text, self.listener, self.member, str(self.attempt))
        properties.update((name, value) for name, value in zip(FAILURE_PROPERTIES, values, strict=True) if value)


def remove_reason(properties: MutableMapping[str, str]) -> None:
    for name in FAILURE_PROPERTIES:
        properties.pop(name, None)


class LatestFailure(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One of a member's latest failures, as its running info tells them."""

    topic: str
    message_id: str = ""
    failed_ms: int = 0
    exception: str = ""
    text: str = ""
    listener: str = ""
    attempt: int = 1


def write_latest(failures: list[LatestFailure]) -> str:
    """Encodes failures as the value of the running info's property LATEST_FAILURES."""
    return msgspec.json.encode(failures).decode()


def read_latest(text: str) -> list[LatestFailure]:
    """Returns at most `LATEST_READ_MAX` failures, their texts cut; none when `text` is no list of them."""
    try:
        read = _LATEST.decode(text)
    except (msgspec.MsgspecError, UnicodeError):
        return []
    return [
        msgspec.structs.replace(
            failure,
            topic=_one_line(failure.topic, NAME_CHARS_MAX),
            message_id=_one_line(failure.message_id, NAME_CHARS_MAX),
            exception=_one_line(failure.exception, CLASS_CHARS_MAX),
            text=_one_line(failure.text, TEXT_CHARS_MAX),
            listener=_one_line(failure.listener, NAME_CHARS_MAX),
        )
        for failure in read[:LATEST_READ_MAX]
    ]


_LATEST = msgspec.json.Decoder(list[LatestFailure])


def _one_line(text: str, chars_max: int) -> str:
    """Returns the first line that says anything, without control characters."""
    line = next((line for line in text.splitlines() if line.strip()), "")
    shown = "".join(char if char.isprintable() else " " for char in line[: chars_max * 2]).strip()
    return shown if len(shown) <= chars_max else shown[: chars_max - 1] + "…"
