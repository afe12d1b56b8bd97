"""Writes one Python function for a usual SQL92 expression; it judges the stored text of properties undecoded.

Usual are AND, OR and NOT over single properties that are compared with a constant, by =, <>, <, IN, BETWEEN, CONTAINS
and their like, or tested by IS NULL. For the others, and for deep ones, `generated` returns None, and `interpreter.py`
evaluates them; where both can, they agree.

Of the expression only the tree's shape gets into the source: names and constants, which a user wrote, are bound to
names of ours. A property is searched for when it is first needed, and converted to a number once.

A condition is written in one of two ways: as its value (True, False or None), or as a test for True or for False, which
is shorter. Both raise Incomparable where the interpreter does, but for the test that is evaluated last: a message is
kept out alike where that raises and where it is not met.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from remoting.sql92.errors import Incomparable
from remoting.sql92.numbers import finite_of, integer_of, long_of
from remoting.sql92.tree import (
    NUMBERS,
    And,
    Comparison,
    Constant,
    In,
    IsNull,
    Kind,
    MessageProperty,
    Node,
    Not,
    Or,
    PropertyAsCondition,
    TextTest,
    common_type,
)
from remoting.wire.property_lookup import TEXT_START, last_value, mark_of

# Python reads no more than 200 parentheses within each other.
LEVELS_MAX = 16

# {0} is a property's value. Usual numbers are converted on the spot, the rest of Java's rules by a call.
_CONVERSIONS = {
    Kind.INTEGER: "int({0}) if {0}.isdigit() and len({0}) < 10 else integer_of({0})",
    Kind.LONG: "int({0}) if {0}.isdigit() and len({0}) < 19 else long_of({0})",
    Kind.DOUBLE: "float({0}) if {0}.replace(POINT, EMPTY, 1).isdigit() else finite_of({0})",
}
_TEXT_TESTS = {"CONTAINS": "{1} in {0}", "STARTSWITH": "{0}.startswith({1})", "ENDSWITH": "{0}.endswith({1})"}
_OPERATORS = {"=": "==", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_MATCHES = """\
def matches(text):
    {unset}
    try:
        return True if {test} else False
    except Incomparable:
        return False
"""
_NAMES: dict[str, Any] = {
    "END": TEXT_START,
    "POINT": b".",
    "EMPTY": b"",
    "Incomparable": Incomparable,
    "last_value": last_value,
    "integer_of": integer_of,
    "long_of": long_of,
    "finite_of": finite_of,
}


def generated(tree: Node) -> Callable[[bytes], bool] | None:
    """Returns a function that says of a text of properties (see `property_lookup.py`) whether `tree` is true.

    Returns None for an expression that is not usual.
    """
    generator = _Generator()
    try:
        test = generator.test(tree, wanted=True, is_last=True)
    except _NotUsual:
        return None
    unset = " = ".join((*generator.unset_at_start, "None")) if generator.unset_at_start else "pass"
    names = _NAMES | generator.constants
    exec(compile(_MATCHES.format(unset=unset, test=test), "<SQL92>", "exec"), names)  # noqa: S102 - no user's text in it
    matches: Callable[[bytes], bool] = names["matches"]
    return matches


class _NotUsual(Exception):
    """Raised for a tree that the interpreter shall evaluate."""


class _Generator:
    """Writes the expressions of one function, in the order in which they are evaluated."""

    def __init__(self) -> None:
        self.constants: dict[str, Any] = {}
        # Variables that are used more than once: a use may come first on one way and second on another.
        self.unset_at_start: dict[str, None] = {}
        self._variables: dict[str, str] = {}
        self._numbers: set[str] = set()
        self._values_count = 0
        self._level = 0

    # conditions of conditions

    def test(self, node: Node, *, wanted: bool, is_last: bool) -> str:
        """Writes an expression that is truthy where `node` is `wanted`. `is_last`: where it is not, nothing follows."""
        match node:
            case Constant(Kind.CONDITION, value):
                return str(value is wanted)
            case Not(operand):
                return self._nested(lambda: self.test(operand, wanted=not wanted, is_last=is_last))
            case Or(operands) | And(operands) if wanted is isinstance(node, Or):
                last = len(operands) - 1
                tests = (
                    self.test(operand, wanted=wanted, is_last=is_last and index == last)
                    for index, operand in enumerate(operands)
                )
                return self._nested(lambda: f"({' or '.join(tests)})")
            case Or(operands) | And(operands) if is_last or not any(map(_can_raise, operands[1:])):
                tests = (self.test(operand, wanted=wanted, is_last=is_last) for operand in operands)
                return self._nested(lambda: f"({' and '.join(tests)})")
            case Or() | And():
                return f"({self._value(node)} is {wanted})"
        is_known, holds = self._condition(node)
        return f"({is_known} and {holds})" if wanted else f"({is_known} and not ({holds}))"

    def _value(self, node: Node) -> str:
        """Writes an expression of the node's value: True, False or None."""
        match node:
            case Constant(Kind.CONDITION, value):
                return str(value)
            case Not(operand):
                inner, variable = self._nested(lambda: self._value(operand)), self._new_value()
                return f"(None if ({variable} := {inner}) is None else not {variable})"
            case Or(operands) | And(operands):
                return self._nested(lambda: self._joined(operands, deciding=isinstance(node, Or)))
        is_known, holds = self._condition(node)
        return f"((True if {holds} else False) if {is_known} else None)"

    def _joined(self, operands: tuple[Node, ...], *, deciding: bool) -> str:
        variables = [self._new_value() for _ in operands]
        decided = " or ".join(
            f"({variable} := {self._value(operand)}) is {deciding}"
            for variable, operand in zip(variables, operands, strict=True)
        )
        return f"({deciding} if {decided} else None if None in ({', '.join(variables)}) else {not deciding})"

    def _nested(self, write: Callable[[], str]) -> str:
        """Raises _NotUsual for a tree that is too deep."""
        self._level += 1
        if self._level > LEVELS_MAX:
            raise _NotUsual
        written = write()
        self._level -= 1
        return written

    def _new_value(self) -> str:
        self._values_count += 1
        return f"v{self._values_count}"

    # conditions of one property and a constant

    def _condition(self, node: Node) -> tuple[str, str]:
        """Returns (whether the condition is not NULL, whether it is true then), evaluated in this order.

        Raises _NotUsual for a condition of other operands.
        """
        match node:
            case Comparison(operator, MessageProperty(name), Constant() as constant):
                is_there = self._property(name)
                return is_there, self._compared(_OPERATORS[operator], name, constant)
            case Comparison("=", Constant() as constant, MessageProperty(name)):
                is_there = self._property(name)
                return "True", f"{is_there} and {self._compared('==', name, constant)}"
            case Comparison(operator, Constant() as constant, MessageProperty(name)):
                is_there = self._property(name)
                return is_there, self._compared(_MIRRORED[operator], name, constant)
            case In(MessageProperty(name), texts):
                is_there = self._property(name)
                return is_there, f"{self._variables[name]} in {self._bind(frozenset(map(_encoded, texts)))}"
            case TextTest(operator, MessageProperty(name), searched, is_negated) if searched:
                is_there = self._property(name)
                holds = _TEXT_TESTS[operator].format(self._variables[name], self._bind(_encoded(searched)))
                return "True", f"{is_there} and {'not ' if is_negated else ''}({holds})"
            case IsNull(MessageProperty(name)):
                return "True", f"not {self._property(name)}"
            case PropertyAsCondition(MessageProperty(name)):
                return self._property(name), "False"
        raise _NotUsual

    def _compared(self, operator: str, name: str, constant: Constant) -> str:
        match constant:
            case Constant(Kind.STRING, str() as text) if operator == "==":
                return f"{self._variables[name]} == {self._bind(_encoded(text))}"
            case Constant(kind, int() | float() as number) if kind in NUMBERS:
                target = common_type(Kind.PROPERTY, kind)
                limit = float(number) if target is Kind.DOUBLE else number
                return f"{self._number(name, target)} {operator} {self._bind(limit)}"
        raise _NotUsual

    def _property(self, name: str) -> str:
        """Writes an expression of the property's value, which it keeps in a variable; falsy where it is missing."""
        mark = self._bind(mark_of(name))
        search = f"text.rpartition({mark})[2].partition(END)[0] or {mark} in text and last_value(text, {mark})"
        is_first = name not in self._variables
        variable = self._variables.setdefault(name, f"p{len(self._variables)}")
        return self._kept(variable, search, is_first=is_first)

    def _number(self, name: str, kind: Kind) -> str:
        """Writes an expression of the property's value, which is in its variable, as a number."""
        value = self._variables[name]
        variable = f"{value}_{kind.value}"
        is_first = variable not in self._numbers
        self._numbers.add(variable)
        return self._kept(variable, _CONVERSIONS[kind].format(value), is_first=is_first)

    def _kept(self, variable: str, expression: str, *, is_first: bool) -> str:
        if is_first:
            return f"({variable} := {expression})"
        self.unset_at_start[variable] = None
        return f"({variable} if {variable} is not None else ({variable} := {expression}))"

    def _bind(self, value: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = value
        return name


_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _can_raise(node: Node) -> bool:
    """Returns whether a property is compared with a number in it."""
    match node:
        case Not(operand):
            return _can_raise(operand)
        case Or(operands) | And(operands):
            return any(map(_can_raise, operands))
        case Comparison(_, left, right):
            return left.kind in NUMBERS or right.kind in NUMBERS
    return False


def _encoded(text: str) -> bytes:
    """Returns the stored bytes of a text. Raises _NotUsual for one that can stand for bytes that are no UTF-8."""
    if not text.isascii() and any(sign == "\ufffd" or "\ud800" <= sign <= "\udfff" for sign in text):
        raise _NotUsual
    return text.encode()
