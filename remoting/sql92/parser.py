"""Parses SQL92 expressions into a tree, as RocketMQ does (`SelectorParser`).

```
or          and (OR and)*
and         equality (AND equality)*
equality    comparison ( = comparison | <> comparison | IS [NOT] NULL )*
comparison  unary ( < unary | <= … | > … | >= … | [NOT] BETWEEN unary AND unary | [NOT] IN ( string, … )
                  | [NOT] CONTAINS string | [NOT] STARTSWITH string | [NOT] ENDSWITH string )*
unary       + unary | - unary | NOT unary | primary
primary     string | number | TRUE | FALSE | NULL | property | ( or )
```

RocketMQ's own peculiarities, kept because the same expression must let the same messages through on both:
NOT binds tighter than a comparison (`NOT a = 1` is `(NOT a) = 1`); what follows a whole expression is not read;
`0.0` is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from remoting.sql92.errors import FilterError
from remoting.sql92.numbers import INTEGER_MAX, LONG_MAX
from remoting.sql92.tokenizer import Token, Tokenizer, TokenKind
from remoting.sql92.tree import (
    NUMBERS,
    And,
    Comparison,
    Condition,
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
)

# Every heartbeat carries it; parsing one of this length blocks the event loop for some tens of milliseconds.
EXPRESSION_CHARS_MAX = 32_768
# Parsing takes six calls a level, of the thousand that Python allows.
NESTING_MAX = 64
# A thousand comparisons, which take a tenth of a second to become a function; the strings of an IN don't count.
OPERANDS_MAX = 2_000

_ORDERS = ("<", "<=", ">", ">=")
_TEXT_TESTS = ("CONTAINS", "STARTSWITH", "ENDSWITH")
_LITERALS = {"TRUE": True, "FALSE": False, "NULL": None}
_ORDER_REMEDY = "compare properties and numbers with < <= > >=; strings only with =, <>, IN or CONTAINS"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Operand:
    """A part of the expression that was parsed, with its place.

    `is_literal`: a constant without a minus before it; RocketMQ treats negative numbers as no literals. `depth` is the
    number of levels of its tree.
    """

    node: Node
    position: int
    is_literal: bool = False
    depth: int = 1

    @property
    def kind(self) -> Kind:
        return self.node.kind


def parse(text: str) -> Node:
    """Returns the tree of an expression, which is a condition. Raises FilterError."""
    if len(text) > EXPRESSION_CHARS_MAX:
        what = f"it has {len(text)} characters, of {EXPRESSION_CHARS_MAX} allowed"
        raise FilterError(EXPRESSION_CHARS_MAX, what, "shorten it, for instance by an IN of fewer strings")
    return _Parser(text).parse()


class _Parser:
    """One method a rule of the grammar; each raises FilterError."""

    def __init__(self, text: str) -> None:
        self._tokens = Tokenizer(text)
        self._nesting = self._operands = 0

    def parse(self) -> Node:
        return _condition(self._or()).node

    def _or(self) -> _Operand:
        return self._chain("OR", self._and, Or)

    def _and(self) -> _Operand:
        return self._chain("AND", self._equality, And)

    def _chain(self, keyword: str, part: Callable[[], _Operand], joined: type[Or] | type[And]) -> _Operand:
        """Parses operands between the same keyword into one node, so that a long chain is not a deep tree."""
        first = part()
        if not self._tokens.is_at(keyword):
            return first
        parts = [_condition(first)]
        while self._tokens.take_if(keyword):
            parts.append(_condition(part()))
        return _joined(joined, parts)

    def _equality(self) -> _Operand:
        left = self._comparison()
        while self._tokens.is_at("=", "<>", "IS"):
            operator = self._tokens.take()
            if operator.text == "IS":
                left = self._is_null(left)
                continue
            right = self._comparison()
            _check_equality(left, right)
            is_equal = Comparison("=", left.node, right.node)
            left = _built(is_equal if operator.text == "=" else Not(is_equal), left, right)
        return left

    def _is_null(self, left: _Operand) -> _Operand:
        is_negated = self._tokens.take_if("NOT")
        self._tokens.expect("NULL", "write IS NULL or IS NOT NULL")
        is_null = IsNull(left.node)
        return _built(Not(is_null) if is_negated else is_null, left)

    def _comparison(self) -> _Operand:
        left = self._unary()
        while self._tokens.is_at("NOT", "BETWEEN", "IN", *_ORDERS, *_TEXT_TESTS):
            operator = self._tokens.take()
            if operator.text in _ORDERS:
                left = _order(operator.text, left, self._unary())
                continue
            is_negated = operator.text == "NOT"
            left = self._named_comparison(self._tokens.take() if is_negated else operator, left, is_negated=is_negated)
        return left

    def _named_comparison(self, keyword: Token, left: _Operand, *, is_negated: bool) -> _Operand:
        if keyword.kind is TokenKind.KEYWORD and keyword.text == "BETWEEN":
            return self._between(left, is_negated=is_negated)
        if keyword.kind is TokenKind.KEYWORD and keyword.text == "IN":
            return self._in(left, is_negated=is_negated)
        if keyword.kind is TokenKind.KEYWORD and keyword.text in _TEXT_TESTS:
            searched = self._string(keyword.text)
            return _built(TextTest(keyword.text, left.node, searched, is_negated), left)
        remedy = "behind it stands BETWEEN, IN, CONTAINS, STARTSWITH or ENDSWITH; else put NOT before the property"
        raise FilterError(keyword.position, f"found {keyword} behind NOT", remedy)

    def _between(self, left: _Operand, *, is_negated: bool) -> _Operand:
        low = self._unary()
        self._tokens.expect("AND", "write BETWEEN 1 AND 10")
        high = self._unary()
        if is_negated:
            return _joined(Or, [_order("<", left, low), _order(">", left, high)])
        inside = [_order(">=", left, low), _order("<=", left, high)]
        lowest, highest = _literal_number(low), _literal_number(high)
        if lowest is not None and highest is not None and highest < lowest:
            raise FilterError(low.position, f"nothing is between {lowest} and {highest}", "name the smaller first")
        return _joined(And, inside)

    def _in(self, left: _Operand, *, is_negated: bool) -> _Operand:
        if not isinstance(left.node, MessageProperty):
            raise FilterError(left.position, "IN stands behind something else than a property", "write name IN ('a')")
        remedy = "write IN ('a', 'b')"
        self._tokens.expect("(", remedy)
        texts = [self._string("IN")]
        while self._tokens.take_if(","):
            texts.append(self._string("IN"))
        self._tokens.expect(")", remedy)
        is_one = In(left.node, frozenset(texts))
        return _built(Not(is_one) if is_negated else is_one, left)

    def _string(self, keyword: str) -> str:
        token = self._tokens.take()
        if token.kind is not TokenKind.STRING:
            raise FilterError(token.position, f"found {token} behind {keyword}", "strings in single quotes stand there")
        return token.text

    def _unary(self) -> _Operand:
        self._nesting += 1
        _check_nesting(self._nesting, self._tokens.current.position)
        try:
            if self._tokens.take_if("+"):
                return self._unary()
            if self._tokens.take_if("-"):
                return _negative(self._unary())
            if self._tokens.take_if("NOT"):
                right = _condition(self._unary())
                return _built(Not(right.node), right)
            return self._primary()
        finally:
            self._nesting -= 1

    def _primary(self) -> _Operand:
        token = self._tokens.take()
        self._operands += token.kind is not TokenKind.SYMBOL
        if self._operands > OPERANDS_MAX:
            what = f"more than {OPERANDS_MAX} properties and constants"
            raise FilterError(token.position, what, "write a IN ('1', '2') for a = 1 OR a = 2")
        match token.kind:
            case TokenKind.STRING:
                return _constant(Kind.STRING, token.text, token.position)
            case TokenKind.INTEGER:
                return _integer(token)
            case TokenKind.DECIMAL:
                return _decimal(token)
            case TokenKind.NAME:
                return _Operand(node=MessageProperty(token.text), position=token.position)
            case TokenKind.KEYWORD if token.text in _LITERALS:
                return _constant(Kind.CONDITION, _LITERALS[token.text], token.position)
            case TokenKind.SYMBOL if token.text == "(":
                inner = self._or()
                self._tokens.expect(")", "close every ( with a )")
                return inner
        raise FilterError(token.position, f"found {token}", "a property, a constant or ( must stand there")


def _integer(token: Token) -> _Operand:
    number = int(token.text.rstrip("lL")) if len(token.text) < len(str(LONG_MAX)) + 2 else LONG_MAX + 1
    if number > LONG_MAX:
        raise FilterError(token.position, f"{token.text} does not fit 64 bits", f"write at most {LONG_MAX}")
    return _constant(Kind.INTEGER if number <= INTEGER_MAX else Kind.LONG, number, token.position)


def _decimal(token: Token) -> _Operand:
    number = float(token.text)
    if number == 0 or math.isinf(number):
        raise FilterError(token.position, f"{token.text} is no decimal that can be compared", "write 0 without a point")
    return _constant(Kind.DOUBLE, number, token.position)


def _negative(operand: _Operand) -> _Operand:
    """Returns the negative number; a minus before anything else is NULL in RocketMQ (`createNegate`)."""
    match operand.node:
        case Constant(kind, int() | float() as value) if kind in NUMBERS:
            return _Operand(node=Constant(kind, -value), position=operand.position)
    depth = operand.depth + 1
    _check_nesting(depth, operand.position)
    return _Operand(node=NullAfterEvaluating(operand.node), position=operand.position, depth=depth)


def _constant(kind: Kind, value: str | float | bool | None, position: int) -> _Operand:
    return _Operand(node=Constant(kind, value), position=position, is_literal=True)


def _literal_number(operand: _Operand) -> float | None:
    """Returns the value of a number that is written without a minus, else None."""
    match operand.node:
        case Constant(kind, int() | float() as value) if kind in NUMBERS and operand.is_literal:
            return value
    return None


def _joined(joined: type[Or] | type[And], operands: list[_Operand]) -> _Operand:
    """Returns one node for all; operands of the same kind are merged into it, which evaluates the same in order."""
    parts: list[Node] = []
    for operand in operands:
        parts += operand.node.operands if isinstance(operand.node, joined) else (operand.node,)
    return _built(joined(tuple(parts)), *operands)


def _built(condition: Condition, *parts: _Operand) -> _Operand:
    depth = 1 + max(part.depth for part in parts)
    _check_nesting(depth, parts[0].position)
    return _Operand(node=condition, position=parts[0].position, depth=depth)


def _check_nesting(depth: int, position: int) -> None:
    if depth > NESTING_MAX:
        raise FilterError(position, f"more than {NESTING_MAX} levels", "use fewer parentheses, NOT and signs in a row")


def _condition(operand: _Operand) -> _Operand:
    """Returns the operand as a condition. Raises FilterError where it can be none."""
    if operand.kind is Kind.CONDITION:
        return operand
    if isinstance(operand.node, MessageProperty):
        return _built(PropertyAsCondition(operand.node), operand)
    raise FilterError(operand.position, "it is neither true nor false", "compare it with something")


def _check_equality(left: _Operand, right: _Operand) -> None:
    for operand in (left, right):
        if operand.node == Constant(Kind.CONDITION, None):
            raise FilterError(operand.position, "nothing equals NULL", "write IS NULL or IS NOT NULL")
    if left.is_literal and left.kind is Kind.CONDITION and right.is_literal and right.kind is not Kind.CONDITION:
        raise FilterError(left.position, "a truth value is compared with another constant", "compare a property")


def _order(operator: str, left: _Operand, right: _Operand) -> _Operand:
    for operand in (left, right):
        if operand.kind in (Kind.CONDITION, Kind.STRING):
            raise FilterError(operand.position, "it has no order", _ORDER_REMEDY)
    return _built(Comparison(operator, left.node, right.node), left, right)
