"""The texts of a dead letter that are searched, as migrations write them. Frozen: what `search_texts.py` says later is
written by a migration of its own, or these would write something else on each release."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any
from zlib import crc32

BODY_CHARS_MAX = 8 * 1024
USER_PROPERTIES_MAX = 20
USER_PROPERTY_CHARS_MAX = 200
_RESERVED = frozenset(
    [
        "1ST_POP_TIME",
        "ARRIVE_TIME",
        "BORN_TIMESTAMP",
        "CHECK_IMMUNITY_TIME_IN_SECONDS",
        "CLUSTER",
        "CONSUME_START_TIME",
        "CORRELATION_ID",
        "DELAY",
        "DLQ_ORIGIN_MESSAGE_ID",
        "DLQ_ORIGIN_TOPIC",
        "INNER_NUM",
        "INSTANCE_ID",
        "KEYS",
        "MAX_OFFSET",
        "MAX_RECONSUME_TIMES",
        "MIN_OFFSET",
        "MSG_REGION",
        "MSG_TYPE",
        "ORIGIN_MESSAGE_ID",
        "PGROUP",
        "POP_CK",
        "POP_CK_OFFSET",
        "PUSH_REPLY_TIME",
        "REAL_QID",
        "REAL_TOPIC",
        "RECONSUME_TIME",
        "REPLY_TO_CLIENT",
        "RETRY_TOPIC",
        "TAGS",
        "TIMER_DELAY_MS",
        "TIMER_DELAY_SEC",
        "TIMER_DELIVER_MS",
        "TIMER_DEL_UNIQKEY",
        "TIMER_DEQUEUE_MS",
        "TIMER_ENQUEUE_MS",
        "TIMER_OUT_MS",
        "TRACE_CONTEXT",
        "TRACE_ON",
        "TRANSACTION_CHECK_TIMES",
        "TRAN_MSG",
        "TRAN_PREPARED_QUEUE_OFFSET",
        "TTL",
        "UNIQ_KEY",
        "WAIT",
        "__BORNHOST",
        "__CRC32#",
        "__FAILURE_ATTEMPT",
        "__FAILURE_CLASS",
        "__FAILURE_LISTENER",
        "__FAILURE_MEMBER",
        "__FAILURE_TEXT",
        "__REPLAY_ENTRY",
        "__REPLAY_JOB",
        "__transactionId__",
    ]
)
_WHOLE = ("message_id", "offset_message_id", "keys", "group_name", "born_host", "failed_member", "failed_listener")
_IN_PARTS = ("keys", "group_name", "origin_topic", "tag", "failure_class", "failure_text")
_SIGNS = re.compile(r"[\W_]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_FAILURE_MARK, _GROUP_MARK, _BETWEEN = "\ue000", "\ue001", "\ue002"
_MARK_FIRST, _MARK_BITS = 0xF0000, 14
_NUL_MARK = "\N{SYMBOL FOR NULL}"


def words_text(dead: Any, properties: Mapping[str, str]) -> str:
    """Returns the words that the dead letter with these properties is found by."""
    words = dict.fromkeys(word for word in (*_words(dead), *_words_of_properties(properties)) if word)
    return f" {' '.join(words)} "


def _words(dead: Any) -> Iterator[str]:
    for name in _WHOLE:
        yield from (_as_word(text) for text in getattr(dead, name).split())
    yield _as_word(dead.born_host.rpartition(":")[0])
    for name in _IN_PARTS:
        for text in getattr(dead, name).split():
            yield _as_word(text)
            for part in _SIGNS.split(text):
                yield _as_word(part)
                yield from (_as_word(hump) for hump in _HUMP.split(part))
    yield f"attempts{dead.attempt_count}"
    yield f"failure{dead.failure_id}"


def _words_of_properties(properties: Mapping[str, str]) -> Iterator[str]:
    yield _as_word(properties.get("ORIGIN_MESSAGE_ID", ""))
    for name in islice((name for name in properties if name not in _RESERVED), USER_PROPERTIES_MAX):
        value = properties[name][:USER_PROPERTY_CHARS_MAX]
        words = _as_word(name), _as_word(value)
        yield _BETWEEN.join(words) if all(words) else ""
        for text in value.split():
            yield _as_word(text)
            yield from (_as_word(part) for part in _SIGNS.split(text))


def _as_word(text: str) -> str:
    return _SIGNS.sub("", text).lower()


def searched_body(dead: Any, body: bytes | None) -> str:
    """Returns what is kept for searches of a plain body; "" of one that is not kept, or is no text."""
    text = _body_text(body)
    marks = f"{_FAILURE_MARK}{_mark(dead.failure_id)}{_GROUP_MARK}{_mark(crc32(dead.group_name.encode()))}"
    return f"{text}\n{marks}" if text else ""


def _mark(number: int) -> str:
    low, high = number % (1 << _MARK_BITS), (number >> _MARK_BITS) % (1 << _MARK_BITS)
    return chr(_MARK_FIRST + high) + chr(_MARK_FIRST + low)


def _body_text(body: bytes | None) -> str:
    if not body:
        return ""
    cut = body[: BODY_CHARS_MAX * 4]
    try:
        text = cut.decode()
    except UnicodeDecodeError as error:
        if len(cut) == len(body) or error.start < len(cut) - 3:
            return ""
        text = cut[: error.start].decode()
    return text[:BODY_CHARS_MAX].replace("\0", _NUL_MARK)
