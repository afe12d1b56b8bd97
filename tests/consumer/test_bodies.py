from __future__ import annotations

import dataclasses
import threading
from typing import Any, TypedDict

import msgspec
import pydantic
import pytest

from consumer.bodies import body_fault, decoder
from consumer.engine.outcomes import NotDecoded


class Order(msgspec.Struct):
    number: int
    customer: str = "nobody"


@dataclasses.dataclass
class Refund:
    cents: int


class Invoice(TypedDict):
    total: float


class Payment(pydantic.BaseModel):
    cents: int = pydantic.Field(gt=0)


@pytest.mark.parametrize(
    ("declared", "body", "value"),
    [
        pytest.param(str, "Grüße, 你好".encode(), "Grüße, 你好", id="text"),
        pytest.param(dict, b'{"number": 17}', {"number": 17}, id="dict"),
        pytest.param(list, b"[1, null]", [1, None], id="list"),
        pytest.param(int, b"17", 17, id="number"),
        pytest.param(dict[str, int], b'{"a": 1}', {"a": 1}, id="dict of numbers"),
        pytest.param(list[Order], b'[{"number": 1}]', [Order(1)], id="list of structs"),
        pytest.param(Order | None, b"null", None, id="union"),
        pytest.param(Any, b"[1]", [1], id="any JSON"),
        pytest.param(Order, b'{"number": 17, "customer": "Ada", "new": 1}', Order(17, "Ada"), id="struct"),
        pytest.param(Refund, b'{"cents": 5}', Refund(5), id="dataclass"),
        pytest.param(Invoice, b'{"total": 1.5}', {"total": 1.5}, id="TypedDict"),
        pytest.param(Payment, b'{"cents": 5}', Payment(cents=5), id="pydantic model"),
    ],
)
def test_a_body_becomes_what_is_declared(declared: Any, body: bytes, value: Any) -> None:
    decode = decoder(declared)
    assert decode is not None
    assert decode(body) == value
    assert body_fault(declared) == ""


def test_bytes_need_no_decoding() -> None:
    assert decoder(bytes) is None


@pytest.mark.parametrize(
    ("declared", "body", "reason"),
    [
        pytest.param(str, b"caf\xe9", r"no UTF-8 text: .* at byte 3", id="Latin-1"),
        pytest.param(dict, b"[1]", "no dict as JSON: Expected `object`, got `array`", id="another kind"),
        pytest.param(dict, b"", "no dict as JSON: .*truncated", id="empty"),
        pytest.param(
            Order, b'{"number": "x"}', r"no Order as JSON: Expected `int`, got `str` - at `\$.number`", id="field"
        ),
        pytest.param(list, b"[" * 100_000, "no list as JSON", id="deep"),
        pytest.param(
            Payment, b'{"cents": 0}', "no Payment as JSON: 1 validation error .*greater than 0", id="pydantic"
        ),
    ],
)
def test_a_body_that_is_something_else_says_so_in_one_line(declared: Any, body: bytes, reason: str) -> None:
    decode = decoder(declared)
    assert decode is not None
    with pytest.raises(NotDecoded, match=reason) as caught:
        decode(body)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    ("declared", "reason"),
    [
        pytest.param(threading.Thread, "no body can be a Thread", id="a class JSON knows nothing of"),
        pytest.param(print, "is not supported", id="a function"),
        pytest.param("Order", "is not supported", id="a name"),
        pytest.param(None, "is needed", id="None"),
    ],
)
def test_a_type_that_no_body_can_have_is_refused(declared: Any, reason: str) -> None:
    assert reason in body_fault(declared)
