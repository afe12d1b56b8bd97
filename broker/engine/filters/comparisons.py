"""Comparisons of two operands (RocketMQ's `ComparisonExpression`).

A text meets a number as a number of that type, a condition as `true` in any case or else false. Two texts are equal
when they are the same; smaller or larger only as numbers. A text that is no such number raises Incomparable.

| | left missing | right missing | both |
|---|---|---|---|
| `=` | unknown | false | true |
| `<` and its like | unknown | unknown | unknown |
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from broker.engine.filters.errors import Incomparable
from broker.engine.filters.numbers import DoubleKey, double_key, double_of, integer_of, long_of
from broker.engine.filters.operands import NUMBERS, TEXTS, Condition, Kind, Operand, Properties

Holds = Callable[[Any, Any], bool]
Convert = Callable[[Any], Any]

ORDERS: dict[str, Holds] = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def equal(left: Operand, right: Operand) -> Condition:
    if Kind.CONDITION in (left.kind, right.kind):
        return _equal(left, right, _same_condition(left.kind, right.kind))
    if left.kind in TEXTS and right.kind in TEXTS:
        return _equal(left, right, operator.eq, None, None)
    target = _common_type(left.kind, right.kind)
    return _equal(left, right, operator.eq, _conversion(left.kind, target), _conversion(right.kind, target))


def ordered(symbol: str, left: Operand, right: Operand) -> Condition:
    """For operands that have an order: properties, numbers, nothing."""
    target = _common_type(left.kind, right.kind)
    convert_left, convert_right = _conversion(left.kind, target), _conversion(right.kind, target)
    holds = ORDERS[symbol]
    if left.kind is Kind.PROPERTY and right.kind in NUMBERS:
        return _property_against(left.value, convert_left, holds, _converted(right.value, convert_right))
    left_of, right_of = left.evaluate, right.evaluate

    def evaluate(properties: Properties) -> bool | None:
        a = left_of(properties)
        b = None if a is None else right_of(properties)
        if b is None:
            return None
        return holds(_converted(a, convert_left), _converted(b, convert_right))

    return evaluate


def _equal(
    left: Operand,
    right: Operand,
    same: Holds,
    convert_left: Convert | None = None,
    convert_right: Convert | None = None,
) -> Condition:
    if left.kind is Kind.PROPERTY and right.value is not None and right.kind is not Kind.PROPERTY:
        return _property_against(left.value, convert_left, same, _converted(right.value, convert_right))
    left_of, right_of = left.evaluate, right.evaluate

    def evaluate(properties: Properties) -> bool | None:
        a, b = left_of(properties), right_of(properties)
        if a is None:
            return True if b is None else None
        if b is None:
            return False
        return same(_converted(a, convert_left), _converted(b, convert_right))

    return evaluate


def _property_against(name: str, convert: Convert | None, holds: Holds, bound: Any) -> Condition:
    """The usual case: a property beside a constant, which is converted once."""
    if convert is None:

        def evaluate_text(properties: Properties) -> bool | None:
            text = properties.get(name)
            return None if text is None else holds(text, bound)

        return evaluate_text
    known = convert

    def evaluate(properties: Properties) -> bool | None:
        text = properties.get(name)
        return None if text is None else holds(known(text), bound)

    return evaluate


def _same_condition(left: Kind, right: Kind) -> Holds:
    """A condition equals no number. RocketMQ fails where a text stands on the right of one."""
    if left is right:
        return operator.is_
    if left in TEXTS:
        return lambda text, outcome: (text.lower() == "true") is outcome
    if right in TEXTS:
        return _refuse_text
    return lambda _, __: False


def _refuse_text(_: Any, text: str) -> bool:
    raise Incomparable(f"a condition cannot be compared with {text!r}")


def _common_type(left: Kind, right: Kind) -> Kind:
    kinds = (left, right)
    if Kind.DOUBLE in kinds or not NUMBERS.intersection(kinds):
        return Kind.DOUBLE
    return Kind.LONG if Kind.LONG in kinds else Kind.INTEGER


def _conversion(kind: Kind, target: Kind) -> Convert | None:
    """What makes both sides comparable; None when they are."""
    if kind in TEXTS:
        return {Kind.INTEGER: integer_of, Kind.LONG: long_of, Kind.DOUBLE: double_of}[target]
    return _double if target is Kind.DOUBLE else None


def _double(number: float) -> DoubleKey:
    return double_key(float(number))


def _converted(value: Any, convert: Convert | None) -> Any:
    return value if convert is None else convert(value)
