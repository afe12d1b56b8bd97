"""What an SQL92 expression says, as a tree (RocketMQ's `Expression` and those that extend it).

The kind of every operand is known when the expression is read: a property is a text or missing, a condition is true,
false or unknown (None). A text that is no such number cannot be compared with one: Incomparable.

| | left missing | right missing | both |
|---|---|---|---|
| `=` | unknown | false | true |
| `<` and its like | unknown, right is not looked at | unknown | unknown |
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar


class Kind(Enum):
    """INTEGER and LONG are Java's 32 and 64 bits: a text that must fit the other operand fits the one or not.

    NOTHING is what a minus makes of anything but a number: always NULL, and no condition.
    """

    CONDITION = "condition"
    PROPERTY = "property"
    STRING = "string"
    INTEGER = "integer"
    LONG = "long"
    DOUBLE = "double"
    NOTHING = "nothing"


NUMBERS = frozenset((Kind.INTEGER, Kind.LONG, Kind.DOUBLE))
TEXTS = frozenset((Kind.PROPERTY, Kind.STRING))


@dataclass(frozen=True, slots=True)
class Constant:
    """TRUE, FALSE and NULL are conditions. A DOUBLE is finite and not zero."""

    kind: Kind
    value: str | float | bool | None


@dataclass(frozen=True, slots=True)
class Named:
    kind: ClassVar[Kind] = Kind.PROPERTY
    name: str


@dataclass(frozen=True, slots=True)
class Nothing:
    """NULL, but looked at all the same: where `of` cannot be compared, the whole expression can't."""

    kind: ClassVar[Kind] = Kind.NOTHING
    of: Node


@dataclass(frozen=True, slots=True)
class Condition:
    kind: ClassVar[Kind] = Kind.CONDITION


@dataclass(frozen=True, slots=True)
class Comparison(Condition):
    """`sign`: `=`, or `<` and its like, which stand between properties, numbers and nothing."""

    sign: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Not(Condition):
    of: Node


@dataclass(frozen=True, slots=True)
class AnyOf(Condition):
    """True as soon as one is; unknown when one is and none is true. What stands behind a true one is not looked at."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class AllOf(Condition):
    """False as soon as one is; unknown when one is and none is false."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class IsNull(Condition):
    of: Node


@dataclass(frozen=True, slots=True)
class PropertyAsCondition(Condition):
    """A text is never true: false when it is there, unknown when it is missing."""

    of: Named


@dataclass(frozen=True, slots=True)
class OneOf(Condition):
    """`IN`: unknown for a missing property."""

    of: Named
    texts: frozenset[str]


@dataclass(frozen=True, slots=True)
class TextTest(Condition):
    """`word`: CONTAINS, STARTSWITH, ENDSWITH. False, negated or not, for what is no text, or if nothing is searched."""

    word: str
    of: Node
    searched: str
    is_negated: bool


Node = Constant | Named | Nothing | Condition


def common_type(left: Kind, right: Kind) -> Kind:
    """What both sides of a comparison are converted to, unless one is a condition or both are texts under `=`."""
    kinds = (left, right)
    if Kind.DOUBLE in kinds or not NUMBERS.intersection(kinds):
        return Kind.DOUBLE
    return Kind.LONG if Kind.LONG in kinds else Kind.INTEGER
