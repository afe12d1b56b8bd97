"""What stands in an SQL92 expression, each a closure over a message's properties (RocketMQ's `Expression`).

The kind of every operand is known when the expression is read: a property is a text or missing, a condition is true,
false or unknown (None). So each comparison is built for its two kinds, and nothing is looked up per message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

Properties = Mapping[str, str]
# What it is for this message; None is SQL's NULL. May raise Incomparable.
Evaluate = Callable[[Properties], Any]
Condition = Callable[[Properties], bool | None]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """`value`: of constants; a property's name. `is_literal`: written so; a number behind a minus isn't in RocketMQ.

    `depth` is how many closures call each other for it.
    """

    kind: Kind
    evaluate: Evaluate
    position: int
    value: Any = None
    is_literal: bool = False
    depth: int = 1


def constant(kind: Kind, value: Any, position: int, *, is_literal: bool = True) -> Operand:
    def evaluate(_: Properties) -> Any:
        return value

    return Operand(kind=kind, evaluate=evaluate, position=position, value=value, is_literal=is_literal)


def named_property(name: str, position: int) -> Operand:
    return Operand(kind=Kind.PROPERTY, evaluate=lambda properties: properties.get(name), position=position, value=name)


def nothing_of(operand: Operand) -> Operand:
    """NULL, but looked at all the same: where it cannot be compared, the whole expression can't."""

    def evaluate(properties: Properties) -> None:
        operand.evaluate(properties)

    return Operand(kind=Kind.NOTHING, evaluate=evaluate, position=operand.position, depth=operand.depth + 1)


# three-valued logic


def any_of(conditions: list[Condition]) -> Condition:
    """True as soon as one is; unknown when one is and none is true. What stands behind a true one is not looked at."""

    def evaluate(properties: Properties) -> bool | None:
        answer: bool | None = False
        for condition in conditions:
            outcome = condition(properties)
            if outcome:
                return True
            if outcome is None:
                answer = None
        return answer

    return evaluate


def all_of(conditions: list[Condition]) -> Condition:
    """False as soon as one is; unknown when one is and none is false."""

    def evaluate(properties: Properties) -> bool | None:
        answer: bool | None = True
        for condition in conditions:
            outcome = condition(properties)
            if outcome:
                continue
            if outcome is False:
                return False
            answer = None
        return answer

    return evaluate


def negation(condition: Condition) -> Condition:
    def evaluate(properties: Properties) -> bool | None:
        outcome = condition(properties)
        return None if outcome is None else not outcome

    return evaluate


def property_as_condition(name: str) -> Condition:
    """A text is never true: false when it is there, unknown when it is missing."""
    return lambda properties: False if name in properties else None


def one_of(name: str, texts: frozenset[str], *, is_negated: bool) -> Condition:
    """`IN`: unknown for a missing property."""

    def evaluate(properties: Properties) -> bool | None:
        text = properties.get(name)
        return None if text is None else (text in texts) is not is_negated

    return evaluate


def text_test(operand: Evaluate, test: Callable[[str, str], bool], searched: str, *, is_negated: bool) -> Condition:
    """CONTAINS and its like: false, negated or not, for what is no text, and when nothing is searched for."""
    if not searched:
        return lambda _: False

    def evaluate(properties: Properties) -> bool | None:
        text = operand(properties)
        return isinstance(text, str) and test(text, searched) is not is_negated

    return evaluate
