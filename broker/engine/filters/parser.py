"""SQL92 expressions as RocketMQ reads them (`SelectorParser`), compiled once to closures.

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
import operator
from collections.abc import Callable, Mapping

from broker.engine.filters.comparisons import ORDERS, equal, ordered
from broker.engine.filters.errors import FilterError, Incomparable
from broker.engine.filters.numbers import INTEGER_MAX, LONG_MAX
from broker.engine.filters.operands import (
    NUMBERS,
    Condition,
    Kind,
    Operand,
    all_of,
    any_of,
    constant,
    named_property,
    negation,
    nothing_of,
    one_of,
    property_as_condition,
    text_test,
)
from broker.engine.filters.tokens import Kind as Word
from broker.engine.filters.tokens import Token, Tokens

# Every heartbeat carries it; reading one of this length holds up all others for some tens of milliseconds.
EXPRESSION_CHARS_MAX = 32_768
# Reading takes six calls a level, of the thousand that Python allows.
NESTING_MAX = 64

_TESTS: dict[str, Callable[[str, str], bool]] = {
    "CONTAINS": operator.contains,
    "STARTSWITH": str.startswith,
    "ENDSWITH": str.endswith,
}
_LITERALS = {"TRUE": True, "FALSE": False, "NULL": None}
_NUMBER_WANTED = "compare properties and numbers with < <= > >=; strings only with =, <>, IN or CONTAINS"


class PropertyFilter:
    """A compiled expression; it never changes and may be shared."""

    def __init__(self, text: str) -> None:
        """Raises FilterError."""
        if len(text) > EXPRESSION_CHARS_MAX:
            what = f"it has {len(text)} characters, of {EXPRESSION_CHARS_MAX} allowed"
            raise FilterError(EXPRESSION_CHARS_MAX, what, "shorten it, for instance by an IN of fewer strings")
        self.text = text
        # True, False, or None for unknown. Raises Incomparable.
        self.evaluate: Condition = _Parser(text).parse()

    def matches(self, properties: Mapping[str, str]) -> bool:
        """Whether the message gets through: unknown and incomparable ones don't."""
        try:
            return self.evaluate(properties) is True
        except Incomparable:
            return False


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = Tokens(text)
        self._nesting = 0

    def parse(self) -> Condition:
        return _condition(self._or()).evaluate

    def _or(self) -> Operand:
        return self._chain("OR", self._and, any_of)

    def _and(self) -> Operand:
        return self._chain("AND", self._equality, all_of)

    def _chain(
        self, keyword: str, part: Callable[[], Operand], joined: Callable[[list[Condition]], Condition]
    ) -> Operand:
        """One closure for all parts, however many: a long chain is not a deep one."""
        first = part()
        if not self._tokens.is_at(keyword):
            return first
        parts = [_condition(first)]
        while self._tokens.take_if(keyword):
            parts.append(_condition(part()))
        return _built(joined([operand.evaluate for operand in parts]), *parts)

    def _equality(self) -> Operand:
        left = self._comparison()
        while self._tokens.is_at("=", "<>", "IS"):
            sign = self._tokens.take()
            if sign.text == "IS":
                left = self._is_null(left)
                continue
            right = self._comparison()
            _check_equality(left, right)
            is_equal = equal(left, right)
            left = _built(is_equal if sign.text == "=" else negation(is_equal), left, right)
        return left

    def _is_null(self, left: Operand) -> Operand:
        is_negated = self._tokens.take_if("NOT")
        self._tokens.expect("NULL", "write IS NULL or IS NOT NULL")
        is_null = _is_none(left)
        return _built(negation(is_null) if is_negated else is_null, left)

    def _comparison(self) -> Operand:
        left = self._unary()
        while self._tokens.is_at("NOT", "BETWEEN", "IN", *ORDERS, *_TESTS):
            sign = self._tokens.take()
            if sign.text in ORDERS:
                left = _order(sign.text, left, self._unary())
                continue
            is_negated = sign.text == "NOT"
            left = self._named_comparison(self._tokens.take() if is_negated else sign, left, is_negated=is_negated)
        return left

    def _named_comparison(self, word: Token, left: Operand, *, is_negated: bool) -> Operand:
        if word.kind is Word.KEYWORD and word.text == "BETWEEN":
            return self._between(left, is_negated=is_negated)
        if word.kind is Word.KEYWORD and word.text == "IN":
            return self._in(left, is_negated=is_negated)
        if word.kind is Word.KEYWORD and word.text in _TESTS:
            searched = self._string(word.text)
            return _built(text_test(left.evaluate, _TESTS[word.text], searched, is_negated=is_negated), left)
        remedy = "behind it stands BETWEEN, IN, CONTAINS, STARTSWITH or ENDSWITH; else put NOT before the property"
        raise FilterError(word.position, f"found {word} behind NOT", remedy)

    def _between(self, left: Operand, *, is_negated: bool) -> Operand:
        low = self._unary()
        self._tokens.expect("AND", "write BETWEEN 1 AND 10")
        high = self._unary()
        if is_negated:
            outside = [_order("<", left, low), _order(">", left, high)]
            return _built(any_of([operand.evaluate for operand in outside]), *outside)
        inside = [_order(">=", left, low), _order("<=", left, high)]
        if low.is_literal and high.is_literal and high.value < low.value:
            raise FilterError(
                low.position, f"nothing is between {low.value} and {high.value}", "name the smaller first"
            )
        return _built(all_of([operand.evaluate for operand in inside]), *inside)

    def _in(self, left: Operand, *, is_negated: bool) -> Operand:
        if left.kind is not Kind.PROPERTY:
            raise FilterError(left.position, "IN stands behind something else than a property", "write name IN ('a')")
        remedy = "write IN ('a', 'b')"
        self._tokens.expect("(", remedy)
        texts = [self._string("IN")]
        while self._tokens.take_if(","):
            texts.append(self._string("IN"))
        self._tokens.expect(")", remedy)
        return _built(one_of(left.value, frozenset(texts), is_negated=is_negated), left)

    def _string(self, keyword: str) -> str:
        token = self._tokens.take()
        if token.kind is not Word.STRING:
            raise FilterError(token.position, f"found {token} behind {keyword}", "strings in single quotes stand there")
        return token.text

    def _unary(self) -> Operand:
        self._nesting += 1
        _check_nesting(self._nesting, self._tokens.current.position)
        try:
            if self._tokens.take_if("+"):
                return self._unary()
            if self._tokens.take_if("-"):
                return _negative(self._unary())
            if self._tokens.take_if("NOT"):
                right = _condition(self._unary())
                return _built(negation(right.evaluate), right)
            return self._primary()
        finally:
            self._nesting -= 1

    def _primary(self) -> Operand:
        token = self._tokens.take()
        match token.kind:
            case Word.STRING:
                return constant(Kind.STRING, token.text, token.position)
            case Word.INTEGER:
                return _integer(token)
            case Word.DECIMAL:
                return _decimal(token)
            case Word.NAME:
                return named_property(token.text, token.position)
            case Word.KEYWORD if token.text in _LITERALS:
                return constant(Kind.CONDITION, _LITERALS[token.text], token.position)
            case Word.SYMBOL if token.text == "(":
                inner = self._or()
                self._tokens.expect(")", "close every ( with a )")
                return inner
        raise FilterError(token.position, f"found {token}", "a property, a constant or ( must stand there")


def _integer(token: Token) -> Operand:
    number = int(token.text.rstrip("lL")) if len(token.text) < len(str(LONG_MAX)) + 2 else LONG_MAX + 1
    if number > LONG_MAX:
        raise FilterError(token.position, f"{token.text} does not fit 64 bits", f"write at most {LONG_MAX}")
    return constant(Kind.INTEGER if number <= INTEGER_MAX else Kind.LONG, number, token.position)


def _decimal(token: Token) -> Operand:
    number = float(token.text)
    if number == 0 or math.isinf(number):
        raise FilterError(token.position, f"{token.text} is no decimal that can be compared", "write 0 without a point")
    return constant(Kind.DOUBLE, number, token.position)


def _negative(operand: Operand) -> Operand:
    """Of a number; of anything else RocketMQ makes NULL."""
    if operand.kind in NUMBERS:
        return constant(operand.kind, -operand.value, operand.position, is_literal=False)
    nothing = nothing_of(operand)
    _check_nesting(nothing.depth, nothing.position)
    return nothing


def _built(condition: Condition, *parts: Operand) -> Operand:
    depth = 1 + max(part.depth for part in parts)
    _check_nesting(depth, parts[0].position)
    return Operand(kind=Kind.CONDITION, evaluate=condition, position=parts[0].position, depth=depth)


def _check_nesting(depth: int, position: int) -> None:
    if depth > NESTING_MAX:
        raise FilterError(position, f"more than {NESTING_MAX} levels", "use fewer parentheses, NOT and signs in a row")


def _condition(operand: Operand) -> Operand:
    if operand.kind is Kind.CONDITION:
        return operand
    if operand.kind is Kind.PROPERTY:
        return _built(property_as_condition(operand.value), operand)
    raise FilterError(operand.position, "it is neither true nor false", "compare it with something")


def _is_none(operand: Operand) -> Condition:
    evaluate = operand.evaluate
    return lambda properties: evaluate(properties) is None


def _check_equality(left: Operand, right: Operand) -> None:
    for operand in (left, right):
        if operand.is_literal and operand.value is None:
            raise FilterError(operand.position, "nothing equals NULL", "write IS NULL or IS NOT NULL")
    if left.is_literal and left.kind is Kind.CONDITION and right.is_literal and right.kind is not Kind.CONDITION:
        raise FilterError(left.position, "a truth value is compared with another constant", "compare a property")


def _order(sign: str, left: Operand, right: Operand) -> Operand:
    for operand in (left, right):
        if operand.kind in (Kind.CONDITION, Kind.STRING):
            raise FilterError(operand.position, "it has no order", _NUMBER_WANTED)
    return _built(ordered(sign, left, right), left, right)
