"""From the tree of an expression to one Python function that judges the text of a message's properties.

Of the expression only the tree's shape gets into the source: what a user wrote, names and constants, is bound to names
of ours. A property is searched for when it is first needed, and made a number once.

A node is written in one of two ways: as its value (True, False or None), or as a test for one of True and False, which
is shorter. Both fail with Incomparable where RocketMQ fails, but for the test that is last: whether it fails or says no
comes to the same there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from broker.engine.filters.errors import Incomparable
from broker.engine.filters.failures import Failures
from broker.engine.filters.numbers import double_key, double_of, finite_of, integer_of, long_of
from broker.engine.filters.tree import (
    NUMBERS,
    TEXTS,
    AllOf,
    AnyOf,
    Comparison,
    Constant,
    IsNull,
    Kind,
    Named,
    Node,
    Not,
    Nothing,
    OneOf,
    PropertyAsCondition,
    TextTest,
    common_type,
)
from remoting.wire.properties_text import TEXT_START, last_value, mark_of

# Deeper ones are a function of their own: Python reads no more than 200 parentheses within each other.
_LEVELS_MAX = 12

# {0} is a property's value. What is usual is done on the spot, the rest of Java's rules by a call.
_NUMBER_OF = {
    Kind.INTEGER: "int({0}) if {0}.isdigit() and len({0}) < 10 else integer_of({0})",
    Kind.LONG: "int({0}) if {0}.isdigit() and len({0}) < 19 else long_of({0})",
    Kind.DOUBLE: "float({0}) if {0}.replace(POINT, EMPTY, 1).isdigit() else finite_of({0})",
}
_TEXT_TESTS = {"CONTAINS": "{1} in {0}", "STARTSWITH": "{0}.startswith({1})", "ENDSWITH": "{0}.endswith({1})"}
_OPERATORS = {"=": "==", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_REPLACED = "\ufffd"
_ALWAYS, _NEVER, _REFUSED = "True", "False", "refuse()"
_MATCHES = """\
def matches(text):
    try:
        {start}
        if {test}:
            return True
    except Incomparable:
        pass
    return False
"""
_VALUE = """\
def {name}(text):
    {start}
    return {value}
"""


def compiled(tree: Node) -> Callable[[bytes], bool]:
    """Whether the tree, a condition, is true of a text of properties (see `properties_text.py`)."""
    program = _Program()
    function = _Function(program)
    test = function.test(tree, wanted=True, is_last=True)
    source = "".join((*program.functions, _MATCHES.format(start=function.start, test=test)))
    exec(compile(source, "<SQL92>", "exec"), program.names)  # noqa: S102 - nothing in it is a user's text
    matches: Callable[[bytes], bool] = program.names["matches"]
    return matches


def _refuse() -> None:
    raise Incomparable("a constant that cannot be compared with what stands beside it")


def _decoded(value: bytes) -> str:
    return value.decode("utf-8", "replace")


_SHARED: dict[str, Any] = {
    "END": TEXT_START,
    "POINT": b".",
    "EMPTY": b"",
    "TRUE": b"true",
    "Incomparable": Incomparable,
    "last_value": last_value,
    "integer_of": integer_of,
    "long_of": long_of,
    "finite_of": finite_of,
    "double_of": double_of,
    "decoded": _decoded,
    "refuse": _refuse,
}


class _Program:
    """The functions written so far, and what the names in them are bound to."""

    def __init__(self) -> None:
        self.functions: list[str] = []
        self.names: dict[str, Any] = dict(_SHARED)
        self.failures = Failures()
        self._bound: dict[tuple[type, Any], str] = {}

    def bind(self, value: Any) -> str:
        """The name of a constant."""
        name = self._bound.setdefault((type(value), value), f"c{len(self._bound)}")
        self.names[name] = value
        return name

    def call(self, node: Node) -> str:
        """The value of a node by a function of its own."""
        function = _Function(self)
        value = function.value(node)
        name = f"f{len(self.functions)}"
        self.functions.append(_VALUE.format(name=name, start=function.start, value=value))
        return f"{name}(text)"


class _Function:
    """One function's expressions, written in the order in which they are looked at."""

    def __init__(self, program: _Program) -> None:
        self._program = program
        self._level = 0
        self._temporaries = 0
        # Properties and numbers that are in their variables, whichever way led here; the last one is the last.
        self._known: list[str] = []
        # Variables by name of the property, and those that may hold None because one way led past their search.
        self._variables: dict[str, str] = {}
        self._unsure: dict[str, None] = {}

    @property
    def start(self) -> str:
        return f"{' = '.join(self._unsure)} = None" if self._unsure else "pass"

    def test(self, node: Node, *, wanted: bool, is_last: bool) -> str:
        """Truthy if the node is `wanted`."""
        match node:
            case Not(of):
                return self.test(of, wanted=not wanted, is_last=is_last)
            case AnyOf(parts) | AllOf(parts) if self._level < _LEVELS_MAX:
                ends_with = isinstance(node, AnyOf)
                if wanted is ends_with:
                    last = len(parts) - 1
                    return self._in_turn(
                        parts, " or ", lambda at, part: self.test(part, wanted=wanted, is_last=is_last and at == last)
                    )
                if is_last or not self._program.failures.are_behind_the_first(parts):
                    return self._in_turn(
                        parts, " and ", lambda _, part: self.test(part, wanted=wanted, is_last=is_last)
                    )
            case Comparison() | OneOf() | TextTest() | IsNull() | PropertyAsCondition() if self._level < _LEVELS_MAX:
                known, holds = self._within(node)
                holds = holds if wanted else f"not ({holds})"
                return f"({holds})" if known == _ALWAYS else f"({known} and {holds})"
        return f"({self.value(node)} is {wanted})"

    def value(self, node: Node) -> str:
        """True, False or None."""
        if self._level >= _LEVELS_MAX:
            return self._program.call(node)
        match node:
            case Constant(_, value):
                return str(value)
            case Not(of):
                self._level += 1
                inner, variable = self.value(of), self._temporary()
                self._level -= 1
                return f"(None if ({variable} := {inner}) is None else not {variable})"
            case AnyOf(parts) | AllOf(parts):
                return self._joined(parts, ends_with=isinstance(node, AnyOf))
        known, holds = self._within(node)
        holds = f"True if {holds} else False"  # it may be an empty value
        return f"({holds})" if known == _ALWAYS else f"(({holds}) if {known} else None)"

    # conditions of conditions

    def _in_turn(self, parts: Sequence[Node], sign: str, write: Callable[[int, Node], str]) -> str:
        """Only of the first it is sure that it is looked at."""
        self._level += 1
        written = [write(0, parts[0])]
        known = len(self._known)
        written += [write(at, part) for at, part in enumerate(parts[1:], 1)]
        del self._known[known:]
        self._level -= 1
        return f"({sign.join(written)})"

    def _joined(self, parts: Sequence[Node], *, ends_with: bool) -> str:
        variables = [self._temporary() for _ in parts]
        ended = self._in_turn(parts, " or ", lambda at, part: f"({variables[at]} := {self.value(part)}) is {ends_with}")
        return f"({ends_with} if {ended} else None if None in ({', '.join(variables)}) else {not ends_with})"

    # conditions of operands

    def _within(self, node: Node) -> tuple[str, str]:
        self._level += 1
        try:
            return self._of_operands(node)
        finally:
            self._level -= 1

    def _of_operands(self, node: Node) -> tuple[str, str]:
        """(whether it is true or false, whether it is true if so): the second is looked at behind the first."""
        match node:
            case Comparison("=", left, right):
                return self._equality(left, right)
            case Comparison(sign, left, right):
                is_left, a = self._operand(left)
                known = len(self._known)
                is_right, b = self._operand(right)
                del self._known[known:]
                return _both(is_left, is_right), self._compared(sign, left, a, right, b)
            case OneOf(of, texts):
                is_there, value = self._operand(of)
                if any(map(_is_odd, texts)):
                    return is_there, f"decoded({value}) in {self._program.bind(texts)}"
                return is_there, f"{value} in {self._program.bind(frozenset(text.encode() for text in texts))}"
            case PropertyAsCondition(of):
                return self._operand(of)[0], _NEVER
            case IsNull(of):
                return _ALWAYS, f"not {self._operand(of)[0]}"
            case TextTest():
                return _ALWAYS, self._text_test(node)
        raise AssertionError(f"{node} is no condition of operands")

    def _equality(self, left: Node, right: Node) -> tuple[str, str]:
        is_left, a = self._operand(left)
        is_right, b = self._operand(right)
        same = self._compared("=", left, a, right, b)
        if is_right == _ALWAYS:
            return is_left, same
        if is_left == _ALWAYS:
            return _ALWAYS, f"{is_right} and {same}"
        one, other = self._temporary(), self._temporary()
        known = f"((({one} := {is_left}), ({other} := {is_right})) and ({one} or not {other}))"
        return known, f"(not {one} or ({other} and {same}))"

    def _text_test(self, node: TextTest) -> str:
        if not node.searched:
            return _NEVER
        is_there, value = self._operand(node.of)
        if node.of.kind not in TEXTS:
            return f"{is_there} and {_NEVER}"
        value, searched = self._texts(value, node.searched)
        holds = _TEXT_TESTS[node.word].format(value, searched)
        return _both(is_there, f"not ({holds})" if node.is_negated else holds)

    # operands

    def _operand(self, node: Node) -> tuple[str, str]:
        """(whether it is not NULL, what it is if so)."""
        match node:
            case Constant(_, None):
                return _NEVER, "None"
            case Constant(Kind.STRING, str() as text):
                return _ALWAYS, self._program.bind(_encoded(text))
            case Constant(_, value):
                return _ALWAYS, self._program.bind(value)
            case Named(name):
                return self._property(name), self._variables[name]
            case Nothing(of):
                return self._looked_at(of), "None"
        value, variable = self.value(node), self._temporary()
        return f"(({variable} := {value}) is not None)", variable

    def _property(self, name: str) -> str:
        """Its value; empty, or False, if it is missing."""
        variable = self._variables.get(name)
        if variable is not None and variable in self._known:
            return variable
        is_first = variable is None
        variable = self._variables.setdefault(name, f"p{len(self._variables)}")
        self._known.append(variable)
        mark = self._program.bind(mark_of(name))
        found = f"text.rpartition({mark})[2].partition(END)[0] or {mark} in text and last_value(text, {mark})"
        if is_first:
            return f"({variable} := {found})"
        self._unsure[variable] = None
        return f"({variable} if {variable} is not None else ({variable} := {found}))"

    def _looked_at(self, node: Node) -> str:
        """Never, but it fails where the node fails."""
        while isinstance(node, Nothing):
            node = node.of
        return f"({self.value(node)} is END)" if self._program.failures.of(node) else _NEVER

    def _temporary(self) -> str:
        self._temporaries += 1
        return f"t{self._temporaries}"

    # comparisons of what is there

    def _compared(self, sign: str, left: Node, a: str, right: Node, b: str) -> str:
        kinds = (left.kind, right.kind)
        if Kind.NOTHING in kinds:
            return _NEVER
        if Kind.CONDITION in kinds:
            return _same_condition(left.kind, a, right.kind, b)
        if sign == "=" and TEXTS.issuperset(kinds):
            return self._same_text(left, a, right, b)
        target = common_type(*kinds)
        is_usual = Kind.PROPERTY in kinds and not NUMBERS.isdisjoint(kinds)
        a, b = self._number(left, a, target, is_usual), self._number(right, b, target, is_usual)
        return _REFUSED if _REFUSED in (a, b) else f"{a} {_OPERATORS[sign]} {b}"

    def _number(self, node: Node, value: str, target: Kind, is_usual: bool) -> str:
        """`is_usual`: one side is a property, the other a number; so a double is beside one that is not zero."""
        match node:
            case Constant(kind, int() | float() as number) if kind in NUMBERS:
                if target is not Kind.DOUBLE:
                    return value
                return self._program.bind(float(number) if is_usual else double_key(float(number)))
            case Constant(_, str() as text):
                try:
                    return self._program.bind(_NUMBER_READERS[target](_encoded(text)))
                except Incomparable:
                    return _REFUSED
        if not is_usual:
            return f"double_of({value})"
        variable = f"{value}_{target.value}"
        if variable in self._known:
            return variable
        self._known.append(variable)
        return f"({variable} := {_NUMBER_OF[target].format(value)})"

    def _same_text(self, left: Node, a: str, right: Node, b: str) -> str:
        match left, right:
            case Named(), Constant(_, str() as text):
                a, b = self._texts(a, text)
            case Constant(_, str() as text), Named():
                b, a = self._texts(b, text)
            case Named(), Named():
                return f"decoded({a}) == decoded({b})"
            case Constant(_, one), Constant(_, other):
                return str(one == other)
        return f"{a} == {b}"

    def _texts(self, value: str, text: str) -> tuple[str, str]:
        """The two as they can be compared: bytes, unless the text may stand for bytes that are no UTF-8."""
        if _is_odd(text):
            return f"decoded({value})", self._program.bind(text)
        return value, self._program.bind(text.encode())


_NUMBER_READERS: dict[Kind, Callable[[bytes], Any]] = {
    Kind.INTEGER: integer_of,
    Kind.LONG: long_of,
    Kind.DOUBLE: double_of,
}


def _same_condition(left: Kind, a: str, right: Kind, b: str) -> str:
    """A condition equals no number. RocketMQ fails where a text stands on the right of one."""
    if left is right:
        return f"{a} is {b}"
    if left in TEXTS:
        return f"({a}.lower() == TRUE) is {b}"
    return _REFUSED if right in TEXTS else _NEVER


def _both(one: str, other: str) -> str:
    if _ALWAYS in (one, other):
        return other if one == _ALWAYS else one
    return f"({one} and {other})"


def _is_odd(text: str) -> bool:
    """Whether it holds what properties that are no UTF-8 are shown with, or what no UTF-8 can hold."""
    return not text.isascii() and any(sign == _REPLACED or "\ud800" <= sign <= "\udfff" for sign in text)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")
