"""Generated functions against a plain reading of the tree, and what a hostile expression costs."""

from __future__ import annotations

import operator
import time
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.engine.filters.errors import Incomparable
from broker.engine.filters.numbers import double_key, double_of, integer_of, long_of
from broker.engine.filters.parser import OPERANDS_MAX, parse
from broker.engine.filters.source import compiled
from broker.engine.filters.tree import (
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
from remoting.wire.properties import encode_properties
from remoting.wire.properties_text import TEXT_START

Message = Mapping[str, str]
ORDERS = {"=": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
READERS = {Kind.INTEGER: integer_of, Kind.LONG: long_of, Kind.DOUBLE: double_of}
TESTS = {"CONTAINS": operator.contains, "STARTSWITH": str.startswith, "ENDSWITH": str.endswith}


def plain(node: Node, message: Message):
    """The value of a node, by the rules in `tree.py`. Raises Incomparable."""
    match node:
        case Constant(_, value):
            return value
        case Named(name):
            return message.get(name)
        case Nothing(of):
            plain(of, message)
            return None
        case Not(of):
            value = plain(of, message)
            return None if value is None else not value
        case AnyOf(parts):
            return until(True, parts, message)
        case AllOf(parts):
            return until(False, parts, message)
        case IsNull(of):
            return plain(of, message) is None
        case PropertyAsCondition(of):
            return None if plain(of, message) is None else False
        case OneOf(of, texts):
            value = plain(of, message)
            return None if value is None else value in texts
        case TextTest(word, of, searched, is_negated):
            value = plain(of, message) if searched else None
            return isinstance(value, str) and TESTS[word](value, searched) is not is_negated
        case Comparison(sign, left, right):
            return compared(sign, left, right, message)


def until(end: bool, parts: tuple[Node, ...], message: Message):
    answer = not end
    for part in parts:
        value = plain(part, message)
        if value is end:
            return end
        if value is None:
            answer = None
    return answer


def compared(sign: str, left: Node, right: Node, message: Message):
    one = plain(left, message)
    if sign != "=" and one is None:
        return None
    other = plain(right, message)
    if one is None or other is None:
        return None if sign != "=" else True if one is other else None if one is None else False
    kinds = {left.kind, right.kind}
    if kinds == {Kind.CONDITION}:
        return one is other
    if Kind.CONDITION in kinds:
        if right.kind in TEXTS:
            raise Incomparable
        return left.kind in TEXTS and (one.lower() == "true") is other
    if sign == "=" and kinds <= TEXTS:
        return one == other
    target = common_type(left.kind, right.kind)
    return ORDERS[sign](number(left, one, target), number(right, other, target))


def number(node: Node, value, target: Kind):
    if node.kind in TEXTS:
        return READERS[target](value.encode())
    return double_key(float(value)) if target is Kind.DOUBLE else value


# trees

NUMBERS = st.sampled_from(
    [Constant(Kind.INTEGER, number) for number in (0, 5, -1)]
    + [Constant(Kind.LONG, 3_000_000_000), Constant(Kind.DOUBLE, 5.5), Constant(Kind.DOUBLE, -1e300)]
)
NAMED = st.sampled_from([Named(name) for name in "abc"])
STRINGS = st.sampled_from([Constant(Kind.STRING, text) for text in ("5", "x", "", "true", "\ufffd", "5.5")])
TEXT = st.sampled_from(["5", "x", "", "\ufffd", "tr"])
TRUTHS = st.sampled_from([Constant(Kind.CONDITION, value) for value in (True, False, None)])
ORDERED = NUMBERS | NAMED | NAMED.map(Nothing)
LEAVES = (
    st.builds(Comparison, st.sampled_from(["<", "<=", ">", ">="]), ORDERED, ORDERED)
    | st.builds(Comparison, st.just("="), NAMED | NUMBERS | STRINGS, NAMED | NUMBERS | STRINGS)
    | st.builds(OneOf, NAMED, st.frozensets(TEXT))
    | st.builds(PropertyAsCondition, NAMED)
    | st.builds(IsNull, NAMED)
    | st.builds(TextTest, st.sampled_from(sorted(TESTS)), NAMED | STRINGS, TEXT, st.booleans())
    | TRUTHS
)


def around(trees):
    operands = trees | trees.map(Nothing) | NAMED | STRINGS | NUMBERS
    several = st.lists(trees, min_size=2, max_size=4).map(tuple)
    return (
        several.map(AnyOf)
        | several.map(AllOf)
        | trees.map(Not)
        | operands.map(IsNull)
        | st.builds(Comparison, st.just("="), operands, operands)
        | st.builds(Comparison, st.just("<"), NAMED, trees.map(Nothing))
        | st.builds(TextTest, st.just("CONTAINS"), operands, TEXT, st.booleans())
    )


TREES = st.recursive(LEAVES, around, max_leaves=24)
VALUES = st.sampled_from(
    ["5", "6", "-1", "05", "x", "true", "TRUE", "NaN", "5.5", "1_0", "\ufffd", "3000000001", "1e400"]
)
MESSAGES = st.dictionaries(st.sampled_from("abc"), VALUES)


@settings(max_examples=400, deadline=None)
@given(TREES, st.lists(MESSAGES, min_size=1, max_size=8))
def test_the_function_says_what_a_plain_reading_of_the_tree_says(tree: Node, messages: list[Message]) -> None:
    is_true, is_false, is_null = compiled(tree), compiled(Not(tree)), compiled(IsNull(tree))
    for message in messages:
        text = TEXT_START + encode_properties(message).encode()
        try:
            value: object = plain(tree, message)
        except Incomparable:
            value = Incomparable
        assert (is_true(text), is_false(text), is_null(text)) == (value is True, value is False, value is None)


def test_bytes_that_are_no_utf8_are_what_they_are_shown_as() -> None:
    text = b"\x02a\x01x\xff\x02b\x01x\xfe\x02"
    assert compiled(parse("a = b AND a = 'x\ufffd' AND a IN ('x\ufffd') AND a ENDSWITH '\ufffd'"))(text)
    assert not compiled(parse("a = 'x\ud800'"))(text)


@pytest.mark.parametrize("value", ["'); import os; (", "{0}", "a\\", "\n", "c0", '"""'])
def test_what_a_user_writes_is_no_source(value: str) -> None:
    quoted = value.replace("'", "''")
    matches = compiled(parse(f"a = '{quoted}'"))
    assert matches(b"\x02a\x01" + value.encode() + b"\x02")
    assert not matches(b"\x02a\x01b\x02")


def test_names_of_ours_are_ordinary_properties() -> None:
    names = ["text", "p0", "t1", "f0", "c0", "int", "END", "matches"]
    stored = TEXT_START + encode_properties(dict.fromkeys(names, "1")).encode()
    assert compiled(parse(" AND ".join(f"{name} = 1" for name in names)))(stored)


# Each with nearly as many operands as an expression may have.
HOSTILE = {
    "a chain of OR": " OR ".join(["a=1"] * (OPERANDS_MAX // 2)),
    "a chain of AND within": f"NOT ({' AND '.join(['a>b'] * (OPERANDS_MAX // 2 - 1))}) OR b",
    "many properties": " OR ".join(f"p{number}=1" for number in range(OPERANDS_MAX // 2)),
    "many strings": f"a IN ({','.join(map(repr, map(str, range(4000))))})",
    "deep and wide": "(" * 25 + " OR ".join(["a>b"] * (OPERANDS_MAX // 2 - 60)) + " AND c > b) OR c=1" * 25,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_expressions_cost_a_bounded_time(text: str) -> None:
    began_s = time.process_time()
    matches = compiled(parse(text))
    compiled_s = time.process_time()
    matches(b"\x02a\x010\x02b\x010\x02c\x010\x02")
    # A tenth of a second and some milliseconds; more on a machine that does something else.
    assert compiled_s - began_s < 2.0
    assert time.process_time() - compiled_s < 0.2
