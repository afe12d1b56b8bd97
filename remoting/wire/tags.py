"""Tags and tag expressions (RocketMQ's `FilterAPI`).

The broker compares hashes only; the client compares the text again, because hashes collide ("Aa" and "BB").
"""

from __future__ import annotations

import msgspec

from remoting.wire.codes import ResponseCode
from remoting.wire.errors import MessageError
from remoting.wire.java_string import string_hash
from remoting.wire.limits import TAG_EXPRESSION_CHARS_MAX

ALL = "*"


def tags_code(tags: str | None) -> int:
    """Returns the tags code of a consume-queue entry: Java's string hash of the tags; 0 without tags."""
    return string_hash(tags) if tags else 0


class TagExpression(msgspec.Struct, frozen=True):
    """`*`, or `A || B`.

    `text` as it was given; `tags` is empty for `*`; `codes` are the hashes that a broker compares.
    """

    text: str
    tags: tuple[str, ...]
    codes: frozenset[int]

    @property
    def matches_all(self) -> bool:
        return not self.tags

    def matches(self, tags: str | None) -> bool:
        """Returns whether the client lets a message with these tags through: it compares the text."""
        return not self.tags or tags in self.tags


def parse_tags(text: str | None) -> TagExpression:
    """Parses a tag expression. None, "" and `*` mean all.

    Raises MessageError (SUBSCRIPTION_PARSE_FAILED) when no tag is left, as in `||`, or the text is too long.
    """
    if not text or text.strip() == ALL:
        return TagExpression(ALL, (), frozenset())
    if len(text) > TAG_EXPRESSION_CHARS_MAX:
        raise MessageError(
            f"the tag expression has {len(text)} characters, of {TAG_EXPRESSION_CHARS_MAX} allowed: subscribe to * and"
            " choose in the consumer",
            ResponseCode.SUBSCRIPTION_PARSE_FAILED,
        )
    tags = tuple(dict.fromkeys(tag for part in text.split("||") if (tag := part.strip())))
    if not tags:
        raise MessageError(f"the tag expression {text!r} names no tag", ResponseCode.SUBSCRIPTION_PARSE_FAILED)
    return TagExpression(text, tags, frozenset(string_hash(tag) for tag in tags))
