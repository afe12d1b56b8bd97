"""Generated functions against the interpreter, on random trees; and that what a user writes never becomes source."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remoting.sql92.code_generator import LEVELS_MAX, generated
from remoting.sql92.interpreter import interpreted
from remoting.sql92.parser import OPERANDS_MAX, parse
from remoting.sql92.tree import (
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
)
from remoting.wire.properties import encode_properties
from remoting.wire.property_lookup import TEXT_START

ORDERS = st.sampled_from(["<", "<=", ">", ">="])
NUMBERS = st.sampled_from(
    [Constant(Kind.INTEGER, number) for number in (0, 5, -1)]
    + [Constant(Kind.LONG, 3_000_000_000), Constant(Kind.DOUBLE, 5.5), Constant(Kind.DOUBLE, -1e300)]
)
PROPERTIES = st.sampled_from([MessageProperty(name) for name in "abc"])
TEXTS = st.sampled_from(["5", "x", "", "tr"])
STRINGS = st.sampled_from([Constant(Kind.STRING, text) for text in ("5", "x", "", "true", "5.5")])
TRUTHS = st.sampled_from([Constant(Kind.CONDITION, value) for value in (True, False, None)])
TEXT_TESTS = st.sampled_from(["CONTAINS", "ENDSWITH", "STARTSWITH"])

# What the generator writes functions for.
USUAL = (
    st.builds(Comparison, ORDERS | st.just("="), PROPERTIES, NUMBERS)
    | st.builds(Comparison, ORDERS | st.just("="), NUMBERS, PROPERTIES)
    | st.builds(Comparison, st.just("="), PROPERTIES, STRINGS)
    | st.builds(Comparison, st.just("="), STRINGS, PROPERTIES)
    | st.builds(In, PROPERTIES, st.frozensets(TEXTS))
    | st.builds(PropertyAsCondition, PROPERTIES)
    | st.builds(IsNull, PROPERTIES)
    | st.builds(TextTest, TEXT_TESTS, PROPERTIES, st.sampled_from(["5", "x", "tr"]), st.booleans())
    | TRUTHS
)
# What it leaves to the interpreter.
ORDERED = NUMBERS | PROPERTIES | PROPERTIES.map(NullAfterEvaluating)
UNUSUAL = (
    st.builds(Comparison, ORDERS, ORDERED, ORDERED)
    | st.builds(Comparison, st.just("="), PROPERTIES | NUMBERS | STRINGS, PROPERTIES | NUMBERS | STRINGS)
    | st.builds(In, PROPERTIES, st.just(frozenset(["\ufffd"])))
    | st.builds(TextTest, TEXT_TESTS, PROPERTIES | STRINGS, TEXTS, st.booleans())
)


def joined(trees: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    several = st.lists(trees, min_size=2, max_size=4).map(tuple)
    return several.map(Or) | several.map(And) | trees.map(Not)


VALUES = st.sampled_from(
    ["5", "6", "-1", "05", "x", "true", "TRUE", "NaN", "5.5", "1_0", "\ufffd", "3000000001", "1e400", ""]
)
# A tree has up to 24 conditions, so fewer than usual would leave kinds of them out.
EXAMPLES = max(120, settings.default.max_examples)
MESSAGES = st.lists(st.dictionaries(st.sampled_from("abc"), VALUES), min_size=1, max_size=8)


def stored(message: dict[str, str]) -> bytes:
    return TEXT_START + encode_properties(message).encode()


@settings(max_examples=EXAMPLES)
@given(st.recursive(USUAL, joined, max_leaves=24), MESSAGES)
@pytest.mark.slow
def test_the_function_of_a_usual_expression_says_what_the_interpreter_says(
    tree: Node, messages: list[dict[str, str]]
) -> None:
    for node in (tree, Not(tree)):
        matches, reference = generated(node), interpreted(node)
        assert matches is not None
        for message in messages:
            assert matches(stored(message)) is reference(stored(message))


@settings(max_examples=EXAMPLES)
@given(st.recursive(USUAL | UNUSUAL, joined, max_leaves=24), MESSAGES)
@pytest.mark.slow
def test_what_is_generated_of_any_expression_says_what_the_interpreter_says(
    tree: Node, messages: list[dict[str, str]]
) -> None:
    matches, reference = generated(tree), interpreted(tree)
    for message in messages:
        assert matches is None or matches(stored(message)) is reference(stored(message))


@pytest.mark.parametrize(
    "text",
    [
        "a = b",
        "a > b",
        "a = TRUE",
        "(a = 5) = TRUE",
        "(a = 5) IS NULL",
        "-a IS NULL",
        "5 = 5.0",
        "'x' = TRUE",
        "'abc' CONTAINS 'b'",
        "a = 'x\ufffd'",
        "a CONTAINS 'x\ufffd'",
        "a IN ('x', 'x\ud800')",
        "NOT " * (LEVELS_MAX + 1) + "a",
    ],
)
def test_unusual_and_deep_expressions_are_left_to_the_interpreter(text: str) -> None:
    assert generated(parse(text)) is None


def test_an_expression_as_large_as_allowed_is_generated() -> None:
    matches = generated(parse(" OR ".join(["a = 1"] * (OPERANDS_MAX // 2))))
    assert matches is not None
    assert matches(b"\x02a\x011\x02")
    deep = generated(parse("NOT " * LEVELS_MAX + "a"))
    assert deep is not None
    assert not deep(b"\x02a\x011\x02")


@pytest.mark.parametrize("value", ["'); import os; (", "{0}", "a\\", "\n", "c0", '"""'])
def test_what_a_user_writes_is_no_source(value: str) -> None:
    quoted = value.replace("'", "''")
    matches = generated(parse(f"a = '{quoted}'"))
    assert matches is not None
    assert matches(b"\x02a\x01" + value.encode() + b"\x02")
    assert not matches(b"\x02a\x01b\x02")


def test_names_of_the_source_are_ordinary_properties() -> None:
    names = ["text", "p0", "v1", "p0_integer", "c0", "int", "END", "matches"]
    matches = generated(parse(" AND ".join(f"{name} = 1" for name in names)))
    assert matches is not None
    assert matches(stored(dict.fromkeys(names, "1")))
