"""The texts of a dead letter that are searched: the words of what it says, and the beginning of its body. Pure.

words   " uniq7 order7 order 7 billing shoppaymenttimeout shop paymenttimeout payment timeout … acmeeu acme eu
        tenant*acmeeu … attempts16 failure12 brokera queue3 ", each word as a whole without its signs, and its parts;
        of a property that the sender gave, name and value once more as one word, with a character between them that
        no word has
body    the first BODY_CHARS_MAX characters of a body that is kept and is text, as it was sent, and behind them the
        marks of its failure and its group: three characters each, which no body has: one trigram finds them
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from zlib import crc32

from mqadmin.deadletters.dead_message import NUL_MARK
from mqadmin.deadletters.models import DeadLetter
from remoting.wire.properties import RESERVED_PROPERTIES, Property

# What people look for stands in the beginning; each character costs one to two bytes of index.
BODY_CHARS_MAX = 8 * 1024
# Shorter ones cannot be looked up by trigrams.
SEARCHED_CHARS_MIN = 3
# Of what a person types; more narrow nothing down.
WORDS_MAX = 10
# Properties of the sender, in their order, and characters of each value: all of them may be 32 KiB.
USER_PROPERTIES_MAX = 20
USER_PROPERTY_CHARS_MAX = 200

# Ids and members as a whole, since their parts are in many; the host with and without its port.
_WHOLE = ("message_id", "offset_message_id", "keys", "group_name", "born_host", "failed_member", "failed_listener")
_IN_PARTS = ("keys", "group_name", "origin_topic", "tag", "failure_class", "failure_text")
_SIGNS = re.compile(r"[\W_]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# Private characters of Unicode, two of them for a number.
_FAILURE_MARK, _GROUP_MARK = "\ue000", "\ue001"
# Of name and value in one word. To the index of SQLite, too, it is a character of a word.
_BETWEEN = "\ue002"
_MARK_FIRST, _MARK_BITS = 0xF0000, 14


def words_text(dead: DeadLetter, properties: Mapping[str, str]) -> str:
    """Returns the words that the dead letter with these properties is found by."""
    told = (*_words(dead), *_words_of_properties(properties), *place_words(dead.broker_name, dead.queue_id))
    words = dict.fromkeys(word for word in told if word)
    return f" {' '.join(words)} "


def _words(dead: DeadLetter) -> Iterator[str]:
    for name in _WHOLE:
        yield from (as_word(text) for text in getattr(dead, name).split())
    yield as_word(dead.born_host.rpartition(":")[0])
    for name in _IN_PARTS:
        for text in getattr(dead, name).split():
            yield as_word(text)
            for part in _SIGNS.split(text):
                yield as_word(part)
                yield from (as_word(hump) for hump in _HUMP.split(part))
    yield attempts_word(dead.attempt_count)
    yield failure_word(dead.failure_id)


def _words_of_properties(properties: Mapping[str, str]) -> Iterator[str]:
    yield as_word(properties.get(Property.ORIGIN_MESSAGE_ID, ""))
    names = (name for name in properties if name not in RESERVED_PROPERTIES)
    for name in islice(names, USER_PROPERTIES_MAX):
        value = properties[name][:USER_PROPERTY_CHARS_MAX]
        yield _property_word(name, value)
        for text in value.split():
            yield as_word(text)
            yield from (as_word(part) for part in _SIGNS.split(text))


def place_words(broker: str, queue_id: int) -> tuple[str, str]:
    """Returns the words by which what lies in a queue of a broker is found: "broker-a" and "queue3"."""
    return as_word(broker), f"queue{queue_id}"


def user_property_word(text: str) -> str:
    """Returns the word of `name=value`, signs and case aside; "" where it has no name or no value."""
    name, _, value = text.partition("=")
    return _property_word(name, value)


def _property_word(name: str, value: str) -> str:
    words = as_word(name), as_word(value)
    return _BETWEEN.join(words) if all(words) else ""


def wanted_words(text: str) -> list[str]:
    """Returns the words that somebody looks for; all of them must be there."""
    return list(dict.fromkeys(word for part in text.split() if (word := as_word(part))))[:WORDS_MAX]


def as_word(text: str) -> str:
    """Returns a word as it is kept: letters and digits alone, small."""
    return _SIGNS.sub("", text).lower()


def attempts_word(count: int) -> str:
    """Returns the word that the dead letters of so many attempts have."""
    return f"attempts{count}"


def failure_word(failure_id: int) -> str:
    """Returns the word that the dead letters of a failure have."""
    return f"failure{failure_id}"


def searched_body(dead: DeadLetter, body: bytes | None) -> str:
    """Returns what is kept for searches of a plain body; "" of one that is not kept, or is no text."""
    text = body_text(body)
    return f"{text}\n{failure_mark(dead.failure_id)}{group_mark(dead.group_name)}" if text else ""


def failure_mark(failure_id: int) -> str:
    return f"{_FAILURE_MARK}{_mark(failure_id)}"


def group_mark(group: str) -> str:
    """Returns the mark of a group; two groups may have the same, so what is found is compared."""
    return f"{_GROUP_MARK}{_mark(crc32(group.encode()))}"


def _mark(number: int) -> str:
    low, high = number % (1 << _MARK_BITS), (number >> _MARK_BITS) % (1 << _MARK_BITS)
    return chr(_MARK_FIRST + high) + chr(_MARK_FIRST + low)


def body_text(body: bytes | None) -> str:
    """Returns what can be searched of a plain body."""
    if not body:
        return ""
    # A character has at most four bytes; one that the cut went through is left out.
    cut = body[: BODY_CHARS_MAX * 4]
    try:
        text = cut.decode()
    except UnicodeDecodeError as error:
        if len(cut) == len(body) or error.start < len(cut) - 3:
            return ""
        text = cut[: error.start].decode()
    return text[:BODY_CHARS_MAX].replace("\0", NUL_MARK)
