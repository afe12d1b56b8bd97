"""Attributes of a topic: which there are, and how a change of them is written (RocketMQ's `TopicAttributes`,
`AttributeParser`, `AttributeUtil`).

A change is a text such as `+message.type=FIFO,-reserve.time`: `+key=value` sets, `-key` takes away. A new topic can
only be given attributes; some cannot be changed afterwards. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from remoting.wire.codes import ResponseCode
from remoting.wire.errors import MessageError

_LONG_MAX = 2**63 - 1
# Every topic's table stands in each answer that lists topics.
CHANGE_CHARS_MAX = 1024
MESSAGE_TYPE = "message.type"
# RocketMQ's `enableMixedMessageType` is off.
MIXED = "MIXED"


@dataclass(frozen=True, slots=True)
class Attribute:
    """`values` it may have; none: any whole number from -1 on."""

    is_changeable: bool
    values: frozenset[str] = frozenset()


# Less than RocketMQ knows: this store has neither batch queues nor compaction, and a topic must be what it says.
ATTRIBUTES: dict[str, Attribute] = {
    "queue.type": Attribute(False, frozenset({"SimpleCQ"})),
    "cleanup.policy": Attribute(False, frozenset({"DELETE"})),
    MESSAGE_TYPE: Attribute(True, frozenset({"UNSPECIFIED", "NORMAL", "FIFO", "DELAY", "TRANSACTION", MIXED})),
    "reserve.time": Attribute(True),
}


def alter_attributes(known: Mapping[str, str], change: str, *, is_new: bool) -> dict[str, str]:
    """Returns `known` after `change`. Raises MessageError naming what is wrong with it.

    >>> alter_attributes({"message.type": "NORMAL"}, "+message.type=FIFO", is_new=False)
    {'message.type': 'FIFO'}
    """
    if len(change) > CHANGE_CHARS_MAX:
        raise _refusal(f"the attributes have {len(change)} characters; {CHANGE_CHARS_MAX} are allowed")
    attributes = dict(known)
    seen: set[str] = set()
    for part in change.split(",") if change else ():
        key, value = _parse(part)
        if key in seen:
            raise _refusal(f"key duplication: {key}")
        seen.add(key)
        if value is None and is_new:
            raise _refusal(f"only add attribute is supported while creating topic. key: {key}")
        _check(key, value, known, is_new=is_new)
        if value is None:
            del attributes[key]
        else:
            attributes[key] = value
    return attributes


def _parse(part: str) -> tuple[str, str | None]:
    """Returns (key, value); the value is None for an attribute to remove."""
    name, sign, value = part.partition("=")
    wanted = "+" if sign else "-"
    if not name.startswith(wanted):
        kind = "add/alter" if sign else "delete"
        raise _refusal(f"{kind} attribute format is wrong: {part}; write +key=value or -key")
    key = name[1:]
    if not key or "+" in key or "-" in key:
        raise _refusal(f"kv string format wrong: {part}; write +key=value or -key")
    return key, value if sign else None


def _check(key: str, value: str | None, known: Mapping[str, str], *, is_new: bool) -> None:
    if value is None and key not in known:
        raise _refusal(f"attempt to delete a nonexistent key: {key}")
    attribute = ATTRIBUTES.get(key)
    if attribute is None:
        raise _refusal(f"unsupported key: {key}; there are {', '.join(sorted(ATTRIBUTES))}")
    if not is_new and not attribute.is_changeable:
        raise _refusal(f"attempt to update an unchangeable attribute. key: {key}")
    if value is None:
        return
    if (key, value) == (MESSAGE_TYPE, MIXED):
        raise MessageError("MIXED message type is not supported.", ResponseCode.INVALID_PARAMETER)
    if attribute.values and value not in attribute.values:
        raise _refusal(f"{key}={value}: value is not in set: {sorted(attribute.values)}")
    if not attribute.values and not _is_number(value):
        raise _refusal(f"{key}={value}: value is not in range(-1, {_LONG_MAX})")


def _is_number(text: str) -> bool:
    try:
        return -1 <= int(text) <= _LONG_MAX
    except ValueError:
        return False


def _refusal(text: str) -> MessageError:
    return MessageError(text, ResponseCode.SYSTEM_ERROR)
