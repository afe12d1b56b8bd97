"""What a subscription lets through, and what is answered when it cannot be used."""

from __future__ import annotations

import json
from typing import Any

import pytest

from broker.engine.filters.subscriptions import EVERYTHING, SubscriptionFilters
from broker.engine.processors.check_client_config import CheckClientConfig
from broker.engine.serving.requests import Request
from remoting.sql92.property_filter import PropertyFilter
from remoting.wire.bodies.heartbeat import SubscriptionData
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.errors import MessageError
from tests.support.broker_parts import Wire


def check(filters: SubscriptionFilters, **subscription: Any) -> Command | None:
    body = json.dumps({"clientId": "c", "group": "g", "subscriptionData": {"topic": "t", **subscription}}).encode()
    request = Request(Command(code=RequestCode.CHECK_CLIENT_CONFIG, body=body), Wire())
    return CheckClientConfig(filters)(request)


def sql(text: str, **fields: Any) -> SubscriptionData:
    return SubscriptionData(topic="orders", expression_type="SQL92", sub_string=text, **fields)


@pytest.mark.parametrize(
    "subscription",
    [
        {},
        {"expressionType": None},
        {"expressionType": "TAG", "subString": "||"},
        {"expressionType": "SQL92", "subString": "a > 5"},
    ],
    ids=["nothing", "no kind", "tags", "SQL"],
)
def test_check_accepts(subscription: dict[str, Any]) -> None:
    answer = check(SubscriptionFilters(has_sql=True), **subscription)
    assert answer is not None
    assert answer.code == ResponseCode.SUCCESS


@pytest.mark.parametrize(
    ("has_sql", "kind", "text", "code", "word"),
    [
        (True, "SQL92", "a >", 23, "character 4"),
        (True, "SQL92", "", 23, "character 1"),
        (True, "REGEX", "a", 23, "use TAG or SQL92"),
        (False, "SQL92", "a > 5", 1, "does not support consumer to filter message by SQL92"),
        (False, "SQL92", "a >", 1, "does not support"),
    ],
    ids=["broken", "empty", "unknown kind", "switched off", "switched off and broken"],
)
def test_check_refuses(has_sql: bool, kind: str, text: str, code: int, word: str) -> None:
    with pytest.raises(MessageError, match=word) as caught:
        check(SubscriptionFilters(has_sql=has_sql), expressionType=kind, subString=text)
    assert caught.value.response_code == code


def test_class_filters_let_everything_through_as_rocketmqs_broker_does() -> None:
    filters = SubscriptionFilters(has_sql=True)
    assert filters.of_group(sql("a > 5", class_filter_mode=True)) == EVERYTHING
    assert filters.of_group(SubscriptionData(topic="t", sub_string="x", class_filter_mode=True)) == EVERYTHING


class Compiler:
    """Compiles expressions and keeps count of them."""

    def __init__(self) -> None:
        self.compiled: list[str] = []

    def __call__(self, text: str) -> PropertyFilter:
        self.compiled.append(text)
        return PropertyFilter(text)


def test_an_expression_is_compiled_once_however_often_it_is_pulled() -> None:
    compiler = Compiler()
    filters = SubscriptionFilters(has_sql=True, compile_sql=compiler)
    for _ in range(3):
        filters.of_group(sql("a > 5"))
        filters.of_request("SQL92", "a > 5")
        with pytest.raises(MessageError):
            filters.of_group(sql("a >"))

    assert compiler.compiled == ["a > 5", "a >"]


def test_the_expressions_that_are_kept_are_bounded() -> None:
    compiler = Compiler()
    filters = SubscriptionFilters(has_sql=True, kept_chars_max=150, compile_sql=compiler)
    for text in ("a = 1", "a = 2", "a = 1", "a = 3", "a = 1", "a = 2"):
        filters.of_request("SQL92", text)

    # Two of 64 fit; the one that was used longest ago goes.
    assert compiler.compiled == ["a = 1", "a = 2", "a = 3", "a = 2"]
