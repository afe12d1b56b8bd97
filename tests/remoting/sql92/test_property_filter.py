"""SQL92 without a JVM: the rules in short, what refusals say, limits. Apache's outcomes: test_filters_as_apache.py."""

from __future__ import annotations

import pytest

from remoting.sql92.errors import FilterError
from remoting.sql92.interpreter import evaluate
from remoting.sql92.parser import EXPRESSION_CHARS_MAX, NESTING_MAX, OPERANDS_MAX, parse
from remoting.sql92.property_filter import PropertyFilter
from remoting.wire.codes import ResponseCode

ORDER = b"\x02size\x016\x02city\x01Tokyo\x02price\x017.5\x02note\x01it's\x02"

LETS_THROUGH = [
    "size = 6",
    "size > 5 AND size <= 6.5",
    "price BETWEEN 7. AND 8.0",
    "size NOT BETWEEN 7 AND 8",
    "city IN ('Kyoto', 'Tokyo')",
    "city NOT IN ('Kyoto')",
    "city = 'Tokyo' OR missing > 5",
    "missing IS NULL AND size IS NOT NULL",
    "city CONTAINS 'ok' AND city STARTSWITH 'To' and city endswith 'yo'",
    "city NOT CONTAINS 'x'",
    "note = 'it''s'",
    "NOT (size > 6) -- a remark\n",
    "/* all of */ TRUE",
    "price > size",
]
KEEPS_OUT = ["size = 7", "size < 6", "missing > 5", "NOT (missing > 5)", "missing = missing2 AND FALSE", "NULL", "city"]


@pytest.mark.parametrize("text", LETS_THROUGH)
def test_lets_through(text: str) -> None:
    assert PropertyFilter(text).matches(ORDER)


@pytest.mark.parametrize("text", KEEPS_OUT)
def test_keeps_out(text: str) -> None:
    assert not PropertyFilter(text).matches(ORDER)


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("missing > 5 AND FALSE", False),
        ("missing > 5 AND TRUE", None),
        ("missing > 5 OR TRUE", True),
        ("missing > 5 OR FALSE", None),
        ("NOT (missing > 5)", None),
    ],
)
def test_the_unknown_is_neither_true_nor_false(text: str, outcome: bool | None) -> None:
    assert evaluate(parse(text), {"size": "6"}) is outcome


def test_a_number_with_a_point_is_no_integer() -> None:
    assert not PropertyFilter("price > 5").matches(ORDER)
    assert PropertyFilter("price > 5.").matches(ORDER)


def test_what_cannot_be_compared_keeps_the_message_out_whatever_stands_beside_it() -> None:
    assert not PropertyFilter("city > 5 OR size = 6").matches(ORDER)
    assert not PropertyFilter("NOT (city > 5 OR size = 6)").matches(ORDER)
    assert not PropertyFilter("(missing = 6 AND city > 5) OR size = 6").matches(ORDER)
    assert PropertyFilter("(size = 7 AND city > 5) OR size = 6").matches(ORDER)
    assert PropertyFilter("size = 6 OR city > 5").matches(ORDER)


# text, character that is named, a word of what is wrong, a word of the remedy
REFUSALS = {
    "nothing": ("", 1, "the end", "property"),
    "half a comparison": ("size >", 7, "the end", "property"),
    "an open string": ("city = 'Tok", 8, "without its end", "twice"),
    "an open comment": ("size /* x", 6, "without its end", "*/"),
    "an open parenthesis": ("(size = 5", 10, "the end", "every ("),
    "another language": ("size == 5", 7, "'='", "property"),
    "a foreign sign": ("size ! 5", 6, "'!'", "operators"),
    "a string in order": ("city > 'Tokyo'", 8, "no order", "CONTAINS"),
    "a condition in order": ("(size = 5) > 5", 2, "no order", "numbers"),
    "equal to NULL": ("city = NULL", 8, "NULL", "IS NULL"),
    "two constants": ("TRUE = 5", 1, "truth value", "property"),
    "a number alone": ("5", 1, "neither true nor false", "compare"),
    "a wrong way round": ("size BETWEEN 9 AND 1", 14, "between 9 and 1", "smaller first"),
    "half a BETWEEN": ("size BETWEEN 9", 15, "AND", "BETWEEN 1 AND 10"),
    "IN of numbers": ("size IN (5)", 10, "'5'", "single quotes"),
    "IN without a property": ("'x' IN ('x')", 1, "IN", "name IN"),
    "CONTAINS of a property": ("city CONTAINS size", 15, "'size'", "single quotes"),
    "IS without NULL": ("city IS 'x'", 9, "'x'", "IS NOT NULL"),
    "NOT in the wrong place": ("size NOT = 5", 10, "'='", "before the property"),
    "too large a number": ("size > 9223372036854775808", 8, "64 bits", "9223372036854775807"),
    "an endless number": (f"size > {'9' * 10_000}", 8, "64 bits", "9223372036854775807"),
    "too large a decimal": ("size > 1e999", 8, "1e999", "0"),
    "zero with a point": ("size > 0.0", 8, "0.0", "without a point"),
}


@pytest.mark.parametrize("case", REFUSALS.values(), ids=REFUSALS.keys())
def test_refusal_says_where_what_and_what_to_do(case: tuple[str, int, str, str]) -> None:
    text, character, what, remedy = case
    with pytest.raises(FilterError) as caught:
        PropertyFilter(text)

    message = str(caught.value)
    assert f"character {character}:" in message
    assert what in message
    assert remedy in message.partition("; ")[2]
    assert caught.value.response_code == ResponseCode.SUBSCRIPTION_PARSE_FAILED


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5_000 + "a" + ")" * 5_000,
        "NOT " * 5_000 + "a",
        "- " * 5_000 + "a",
        "+" * 5_000 + "a",
        "a" + " = 1" * 5_000,
        "a" + " IS NULL" * 3_000,
        "a" + " CONTAINS 'x'" * 2_000,
    ],
    ids=["parentheses", "NOT", "minus", "plus", "=", "IS NULL", "CONTAINS"],
)
def test_deep_expressions_are_refused(text: str) -> None:
    with pytest.raises(FilterError, match=f"more than {NESTING_MAX} levels"):
        PropertyFilter(text)


def test_as_deep_as_allowed_is_read_and_evaluated() -> None:
    levels = NESTING_MAX - 3
    assert evaluate(parse("NOT " * levels + "missing"), {}) is None
    assert PropertyFilter("(" * levels + "size = 6" + ")" * levels).matches(ORDER)


@pytest.mark.slow
def test_long_chains_are_not_deep() -> None:
    text = " OR ".join(["size = 1"] * (OPERANDS_MAX // 2 - 1))

    assert not PropertyFilter(text).matches(ORDER)
    assert PropertyFilter(f"{text} OR size = 6").matches(ORDER)


def test_expressions_that_are_too_long_are_refused() -> None:
    with pytest.raises(FilterError, match="shorten it"):
        PropertyFilter("a = '" + "x" * EXPRESSION_CHARS_MAX + "'")


def test_expressions_of_too_many_operands_are_refused() -> None:
    with pytest.raises(FilterError, match="write a IN"):
        PropertyFilter(" OR ".join(["size = 1"] * (OPERANDS_MAX // 2 + 1)))
