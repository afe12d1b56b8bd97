"""The rules of evaluation, one by one; and that an expression of any size costs a bounded number of steps."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from remoting.sql92.errors import Incomparable
from remoting.sql92.interpreter import evaluate, interpreted
from remoting.sql92.parser import OPERANDS_MAX, parse

ORDER = {"size": "6", "city": "Tokyo", "price": "7.5", "truth": "True"}


class CountingProperties(dict[str, str]):
    """Counts how often each property is asked for."""

    def __init__(self, properties: dict[str, str]) -> None:
        super().__init__(properties)
        self.asked: Counter[str] = Counter()

    def get(self, name: str, default: Any = None) -> Any:
        self.asked[name] += 1
        return super().get(name, default)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("size = 6", True),
        ("size = 6.0", True),
        ("size <> 6", False),
        ("size = '6'", True),
        ("size < price", True),
        ("missing = 6", None),
        ("6 = missing", False),
        ("missing = gone", True),
        ("missing < 6", None),
        ("6 < missing", None),
        ("missing = city", None),
        ("city = missing", False),
        ("NOT (missing = 6)", None),
        ("missing = 6 OR size = 6", True),
        ("missing = 6 OR size = 7", None),
        ("missing = 6 AND size = 7", False),
        ("missing = 6 AND size = 6", None),
        ("city", False),
        ("missing", None),
        ("city IN ('Kyoto', 'Tokyo')", True),
        ("missing IN ('Kyoto')", None),
        ("city CONTAINS 'ok'", True),
        ("city NOT CONTAINS 'ok'", False),
        ("missing NOT CONTAINS 'ok'", False),
        ("city CONTAINS ''", False),
        ("city NOT CONTAINS ''", False),
        ("TRUE NOT CONTAINS 'x'", False),
        ("missing IS NULL", True),
        ("(missing = 6) IS NULL", True),
        ("-city IS NULL", True),
        ("(size = 6) = TRUE", True),
        ("truth = (size = 6)", True),
        ("city = (size = 6)", False),
        ("(size = 6) = 6", False),
        ("NULL", None),
    ],
)
def test_value_of_an_expression(text: str, value: bool | None) -> None:
    assert evaluate(parse(text), ORDER) is value


@pytest.mark.parametrize(
    "text",
    [
        "city > 5",
        "city = 5",
        "price = 5",
        "TRUE = city",
        "city > 5 OR size = 6",
        "missing > 5 AND city > 5",
        "-(city > 5) IS NULL",
        "NOT (city > 5)",
    ],
)
def test_what_cannot_be_compared_raises_for_the_whole_expression(text: str) -> None:
    with pytest.raises(Incomparable):
        evaluate(parse(text), ORDER)


@pytest.mark.parametrize("text", ["size = 6 OR city > 5", "size = 7 AND city > 5", "missing < -(city > 5)"])
def test_operands_behind_a_decision_are_not_evaluated(text: str) -> None:
    properties = CountingProperties(ORDER)
    evaluate(parse(text), properties)
    assert not properties.asked["city"]


def test_bytes_that_are_no_utf8_are_compared_as_they_are_shown() -> None:
    text = b"\x02a\x01x\xff\x02b\x01x\xfe\x02"
    assert interpreted(parse("a = b AND a = 'x\ufffd' AND a IN ('x\ufffd') AND a ENDSWITH '\ufffd'"))(text)
    assert not interpreted(parse("a = 'x\ud800'"))(text)


# Each with nearly as many operands as an expression may have.
HOSTILE = {
    "a chain of OR": " OR ".join(["a=1"] * (OPERANDS_MAX // 2)),
    "a chain of AND within": f"NOT ({' AND '.join(['a>b'] * (OPERANDS_MAX // 2 - 1))}) OR b",
    "many properties": " OR ".join(f"p{number}=1" for number in range(OPERANDS_MAX // 2)),
    "many strings": f"a IN ({','.join(map(repr, map(str, range(4000))))})",
    "deep and wide": "(" * 25 + " OR ".join(["a>b"] * (OPERANDS_MAX // 2 - 60)) + " AND c > b) OR c=1" * 25,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_each_operand_of_a_hostile_expression_is_evaluated_once_at_most(text: str) -> None:
    properties = CountingProperties({"a": "0", "b": "0", "c": "0"})
    evaluate(parse(text), properties)
    assert properties.asked.total() <= OPERANDS_MAX
