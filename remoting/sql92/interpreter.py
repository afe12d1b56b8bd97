"""What an SQL92 expression means: evaluates its tree over the properties of a message, rule by rule as RocketMQ does.

This is the reference. `code_generator.py` writes faster functions for the usual expressions and must agree with it;
all other expressions are evaluated here. Conditions are true, false or NULL (None); a message gets through only where
the whole expression is true.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from remoting.sql92.errors import Incomparable
from remoting.sql92.numbers import double_key, double_of, integer_of, long_of
from remoting.sql92.tree import (
    TEXTS,
    And,
    Comparison,
    Constant,
    In,
    IsNull,
    Kind,
    MessageProperty,
    Node,
    Not,
    NullAfterEvaluating,
    Or,
    PropertyAsCondition,
    TextTest,
    common_type,
)
from remoting.wire.properties import decode_properties

Properties = Mapping[str, str]

_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_TEXT_TESTS: dict[str, Callable[[str, str], bool]] = {
    "CONTAINS": operator.contains,
    "STARTSWITH": str.startswith,
    "ENDSWITH": str.endswith,
}
_NUMBER_READERS: dict[Kind, Callable[[bytes], Any]] = {
    Kind.INTEGER: integer_of,
    Kind.LONG: long_of,
    Kind.DOUBLE: double_of,
}


def interpreted(tree: Node) -> Callable[[bytes], bool]:
    """Returns a function that evaluates `tree` over the stored text of a message's properties.

    It returns whether the message gets through: where the tree is false, NULL or raises, it doesn't.
    """

    def matches(text: bytes) -> bool:
        try:
            return evaluate(tree, decode_properties(text.decode("utf-8", "replace"))) is True
        except Incomparable:
            return False

    return matches


def evaluate(node: Node, properties: Properties) -> Any:
    """Returns the value of a node: True, False or None of a condition; else a string, a number or None.

    Raises Incomparable where RocketMQ's evaluation fails, like 'ten' > 5; the whole expression has no value then.
    """
    match node:
        case Constant(_, value):
            return value
        case MessageProperty(name):
            return properties.get(name)
        case NullAfterEvaluating(operand):
            evaluate(operand, properties)
            return None
        case Not(operand):
            value = evaluate(operand, properties)
            return None if value is None else not value
        case Or(operands):
            return _until(True, operands, properties)
        case And(operands):
            return _until(False, operands, properties)
        case IsNull(operand):
            return evaluate(operand, properties) is None
        case PropertyAsCondition(operand):
            return _property_as_condition(operand, properties)
        case In(operand, texts):
            value = evaluate(operand, properties)
            return None if value is None else value in texts
        case TextTest():
            return _text_test(node, properties)
        case Comparison("=", left, right):
            return _equality(left, right, properties)
        case Comparison(order, left, right):
            return _order(order, left, right, properties)
    raise AssertionError(f"{node} is no node of an expression")


def _until(deciding: bool, operands: tuple[Node, ...], properties: Properties) -> bool | None:
    """Evaluates OR (`deciding` is True) or AND (False): the first operand with that value decides, the rest is skipped.

    Else NULL where one operand is NULL (`LogicExpression`).
    """
    outcome: bool | None = not deciding
    for operand in operands:
        value: bool | None = evaluate(operand, properties)
        if value is deciding:
            return deciding
        if value is None:
            outcome = None
    return outcome


def _property_as_condition(operand: MessageProperty, properties: Properties) -> bool | None:
    """Returns false where the property is there: a string is never true.

    NULL where it is missing (`PropertyExpression`).
    """
    return None if evaluate(operand, properties) is None else False


def _text_test(test: TextTest, properties: Properties) -> bool:
    """Evaluates CONTAINS, STARTSWITH, ENDSWITH, with or without NOT (`ComparisonExpression.createContains` …).

    False, negated or not, for what is no string, and where the empty string is searched.
    """
    value = evaluate(test.operand, properties) if test.searched else None
    return isinstance(value, str) and _TEXT_TESTS[test.operator](value, test.searched) is not test.is_negated


def _equality(left: Node, right: Node, properties: Properties) -> bool | None:
    """Evaluates `=`, both sides of it (`ComparisonExpression.createEqual`).

    | left missing | right missing | both missing |
    |---|---|---|
    | NULL | false | true |
    """
    left_value, right_value = evaluate(left, properties), evaluate(right, properties)
    if left_value is None:
        return True if right_value is None else None
    if right_value is None:
        return False
    if Kind.CONDITION in (left.kind, right.kind):
        return _same_condition(left.kind, left_value, right.kind, right_value)
    if left.kind in TEXTS and right.kind in TEXTS:
        return bool(left_value == right_value)
    return _compared("=", left, left_value, right, right_value)


def _same_condition(left: Kind, left_value: Any, right: Kind, right_value: Any) -> bool:
    """Evaluates `=` with a condition on one side or both (`ComparisonExpression.compare` of a Boolean).

    A string left of a condition is true where it reads "true" in any case; right of one it raises Incomparable. A
    number never equals a condition.
    """
    if right in TEXTS:
        raise Incomparable(f"{right_value!r} stands right of a condition")
    if left in TEXTS:
        return (str(left_value).lower() == "true") is right_value
    return left is right and left_value is right_value


def _order(order: str, left: Node, right: Node, properties: Properties) -> bool | None:
    """Evaluates <, <=, >, >=: NULL where a side is missing; behind a missing left side the right one is skipped."""
    left_value = evaluate(left, properties)
    if left_value is None:
        return None
    right_value = evaluate(right, properties)
    if right_value is None:
        return None
    return _compared(order, left, left_value, right, right_value)


def _compared(order: str, left: Node, left_value: Any, right: Node, right_value: Any) -> bool:
    """Compares as numbers of the kind that `common_type` names; raises Incomparable for a string that is none."""
    kind = common_type(left.kind, right.kind)
    return _OPERATORS[order](_number(left.kind, left_value, kind), _number(right.kind, right_value, kind))


def _number(kind: Kind, value: Any, wanted: Kind) -> Any:
    if kind in TEXTS:
        return _NUMBER_READERS[wanted](value.encode("utf-8", "replace"))
    return double_key(float(value)) if wanted is Kind.DOUBLE else value
