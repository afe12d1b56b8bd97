"""An SQL92 expression as a tree (RocketMQ's `Expression` and its implementations in `org.apache.rocketmq.filter`).

The kind of every operand is known when the expression is parsed: a property is a string or missing, a condition is
true, false or NULL (unknown, None in Python). What the nodes evaluate to is in `interpreter.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar


class Kind(Enum):
    """What an operand is.

    INTEGER and LONG are Java's 32 and 64 bits; a property compared with a number must fit its kind. NULL is what a
    minus makes of anything but a number; it is no condition.
    """

    CONDITION = "condition"
    PROPERTY = "property"
    STRING = "string"
    INTEGER = "integer"
    LONG = "long"
    DOUBLE = "double"
    NULL = "null"


NUMBERS = frozenset((Kind.INTEGER, Kind.LONG, Kind.DOUBLE))
# Kinds whose values are strings.
TEXTS = frozenset((Kind.PROPERTY, Kind.STRING))


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal. TRUE, FALSE and NULL are of kind CONDITION. A DOUBLE is finite and not zero."""

    kind: Kind
    value: str | float | bool | None


@dataclass(frozen=True, slots=True)
class MessageProperty:
    """A property of the message, by its name."""

    kind: ClassVar[Kind] = Kind.PROPERTY
    name: str


@dataclass(frozen=True, slots=True)
class NullAfterEvaluating:
    """NULL; but the operand is evaluated first, and where that raises Incomparable, this does."""

    kind: ClassVar[Kind] = Kind.NULL
    operand: Node


@dataclass(frozen=True, slots=True)
class Condition:
    """Base of the nodes that are true, false or NULL."""

    kind: ClassVar[Kind] = Kind.CONDITION


@dataclass(frozen=True, slots=True)
class Comparison(Condition):
    """`operator` is =, <, <=, > or >=; `a <> b` is Not of =. The order operators have no string and no condition."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Not(Condition):
    """`NOT a`; NULL stays NULL."""

    operand: Node


@dataclass(frozen=True, slots=True)
class Or(Condition):
    """Two or more conditions; evaluated from the left up to the first that is true."""

    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class And(Condition):
    """Two or more conditions; evaluated from the left up to the first that is false."""

    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class IsNull(Condition):
    """`a IS NULL`; never NULL itself."""

    operand: Node


@dataclass(frozen=True, slots=True)
class PropertyAsCondition(Condition):
    """A property where a condition must stand, as in `a AND b = 1`."""

    operand: MessageProperty


@dataclass(frozen=True, slots=True)
class In(Condition):
    """`a IN ('x', 'y')`."""

    operand: MessageProperty
    texts: frozenset[str]


@dataclass(frozen=True, slots=True)
class TextTest(Condition):
    """`operator` is CONTAINS, STARTSWITH or ENDSWITH; `searched` the string behind it."""

    operator: str
    operand: Node
    searched: str
    is_negated: bool


Node = Constant | MessageProperty | NullAfterEvaluating | Condition


def common_type(left: Kind, right: Kind) -> Kind:
    """Returns the kind of number that both sides of a comparison are converted to.

    For comparisons without conditions, and not for `=` between two strings: those are compared as they are.
    """
    kinds = (left, right)
    if Kind.DOUBLE in kinds or not NUMBERS.intersection(kinds):
        return Kind.DOUBLE
    return Kind.LONG if Kind.LONG in kinds else Kind.INTEGER
