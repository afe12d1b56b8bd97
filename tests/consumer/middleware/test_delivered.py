"""The middleware that comes with the project, each around a plain and an async listener."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import REGISTRY

from consumer import Later, Message
from consumer.middleware import connections, prometheus
from consumer.middleware.chain import Call, Consume, ListenerInfo, Middleware, wrapped
from consumer.middleware.connections import database_connections
from consumer.middleware.logging_context import MessageFields, logging_context
from consumer.middleware.opentelemetry import trace_properties, tracing
from consumer.middleware.time_limit import TookTooLong, limited
from consumer.middleware.transactions import atomic

Run = Callable[[Middleware, Callable[[Any], Any], Any], Any]


def plain(middleware: Middleware, listen: Callable[[Any], Any], argument: Any, group: str = "billing") -> Any:
    return wrapped(listen, ListenerInfo(group, "orders", "shop.bill", is_async=False), [middleware])(argument)


def async_(middleware: Middleware, listen: Callable[[Any], Any], argument: Any, group: str = "billing") -> Any:
    async def alisten(message: Any) -> Any:
        await asyncio.sleep(0)
        return listen(message)

    call = wrapped(alisten, ListenerInfo(group, "orders", "shop.bill", is_async=True), [middleware])
    return asyncio.run(call(argument))


both = pytest.mark.parametrize("run", [plain, async_], ids=["plain", "async"])


def message(**fields: Any) -> Message:
    return Message(topic="orders", body=b"17", **fields)


def fail(message: object) -> None:
    raise ZeroDivisionError


# connections


@pytest.fixture
def closings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    steps: list[str] = []
    monkeypatch.setattr(connections, "close_old_connections", lambda: steps.append("closed"))
    return steps


def test_old_connections_are_closed_around_each_call_of_a_plain_listener(closings: list[str]) -> None:
    with pytest.raises(ZeroDivisionError):
        plain(database_connections, lambda _: closings.append("listens") or fail(None), message())
    assert closings == ["closed", "listens", "closed"]


def test_a_call_that_follows_upon_another_in_its_thread_is_looked_at_once(closings: list[str]) -> None:
    now_s = 0.0
    info = ListenerInfo("billing", "orders", "shop.bill", is_async=False)
    listen = Consume(lambda _: closings.append("listens"), info, is_async=False)
    consume = connections._around_sync(listen, lambda: now_s)
    for passed_s in (0.0, 0.1, 2.0):
        now_s += passed_s
        consume(message())
    again = threading.Thread(target=consume, args=(message(),))
    again.start()
    again.join()
    first, follows, later = ["closed", "listens", "closed"], ["listens", "closed"], ["closed", "listens", "closed"]
    assert closings == [*first, *follows, *later, *first]


async def test_around_an_async_listener_they_are_closed_now_and_then_and_after_each_error(
    closings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "INTERVAL_S", 3600.0)

    async def listen(message: Message) -> None:
        closings.append("listens")
        if message.body == b"bad":
            fail(message)

    call = wrapped(listen, ListenerInfo("billing", "orders", "bill", is_async=True), [database_connections])
    await call(message())
    await call(message())
    with pytest.raises(ZeroDivisionError):
        await call(Message(topic="orders", body=b"bad"))
    assert closings == ["closed", "listens", "listens", "listens", "closed"]


# transactions


@pytest.mark.django_db(transaction=True)
def test_what_raises_has_changed_nothing_and_what_returns_is_committed() -> None:
    committed: list[str] = []

    def listen(message: Message) -> None:
        User.objects.create(username=message.text)
        transaction.on_commit(lambda: committed.append(message.text))
        if message.tags == "bad":
            fail(message)

    plain(atomic, listen, message())
    with pytest.raises(ZeroDivisionError):
        plain(atomic, listen, Message(topic="orders", body=b"18", properties={"TAGS": "bad"}))
    assert list(User.objects.values_list("username", flat=True)) == committed == ["17"]


def test_no_transaction_is_promised_to_an_async_listener() -> None:
    with pytest.raises(ImproperlyConfigured, match=r"shop\.bill is async"):
        async_(atomic, print, message())


# time limit


async def test_an_async_listener_that_takes_too_long_is_cancelled() -> None:
    steps: list[str] = []

    async def hang(message: object) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            steps.append("cancelled")

    with pytest.raises(TookTooLong, match=r"shop.bill took longer than its time limit of 0.01 s"):
        await limited(hang, 0.01, "shop.bill")(message())
    assert steps == ["cancelled"]


async def test_a_time_out_of_the_listener_itself_is_its_own() -> None:
    async def time_out(message: object) -> None:
        raise TimeoutError("the mail server")

    async def consume(message: object) -> int:
        return 4

    with pytest.raises(TimeoutError, match="the mail server"):
        await limited(time_out, 60, "shop.bill")(message())
    assert await limited(consume, 60, "shop.bill")(message()) == 4


# logging


@both
def test_log_lines_of_a_listener_say_which_message_they_are_about(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    caplog.handler.addFilter(fields := MessageFields())
    logger = logging.getLogger("shop")
    try:
        run(logging_context, lambda _: logger.warning("inside"), message(id="AC11", reconsume_times=2))
        run(logging_context, lambda _: logger.warning("batch"), [message(id="AC12"), message(id="AC13")])
        with pytest.raises(ZeroDivisionError):
            run(logging_context, fail, message())
        logger.warning("outside")
    finally:
        caplog.handler.removeFilter(fields)
    said = [
        (vars(one)["mq_group"], vars(one)["mq_message_id"], vars(one)["mq_reconsume_times"], vars(one)["mq_messages"])
        for one in caplog.records
        if one.name == "shop"
    ]
    assert said == [("billing", "AC11", 2, 1), ("billing", "AC12", 0, 2), ("", "", 0, 0)]


# Prometheus


def figure(name: str, group: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(name, {"cluster": "", "group": group, "topic": "orders", **labels})


@both
def test_messages_are_counted_by_what_became_of_them(run: Run, request: pytest.FixtureRequest) -> None:
    group = request.node.name

    def later(message: object) -> None:
        raise Later("not yet")

    def measured(listen: Callable[[Any], Any]) -> Call:
        return lambda argument: run(prometheus.metrics, listen, argument, group)  # type: ignore[call-arg]

    running: list[float | None] = []
    measured(lambda _: running.append(figure("mq_listener_running", group)))(message(born_ms=time.time_ns() // 10**6))
    measured(lambda _: None)([message(), message()])
    for listen, error in ((fail, ZeroDivisionError), (later, Later)):
        with pytest.raises(error):
            measured(listen)(message())
    outcomes = {
        outcome: figure("mq_listener_messages_total", group, outcome=outcome)
        for outcome in ("consumed", "failed", "later")
    }
    assert outcomes == {"consumed": 3, "failed": 1, "later": 1}
    assert figure("mq_listener_seconds_count", group) == 4
    assert figure("mq_listener_message_age_seconds_count", group) == 5
    assert (running, figure("mq_listener_running", group)) == ([1], 0)


# OpenTelemetry


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], tuple[ReadableSpan, ...]]]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    yield exporter.get_finished_spans
    provider.shutdown()


@both
def test_a_call_is_a_span_below_that_of_the_producer(run: Run, spans: Callable[[], tuple[ReadableSpan, ...]]) -> None:
    with trace.get_tracer("shop").start_as_current_span("checkout") as checkout:
        properties = {**trace_properties(), "TAGS": "paid", "KEYS": "order-17"}
    run(tracing, lambda _: None, message(id="AC11", properties=properties, reconsume_times=1))
    _, span = spans()
    assert (span.name, span.kind) == ("process orders", trace.SpanKind.CONSUMER)
    assert span.parent is not None
    assert (span.parent.span_id, span.context.trace_id) == (
        checkout.get_span_context().span_id,
        checkout.get_span_context().trace_id,
    )
    attributes = dict(span.attributes or {})
    assert {name: attributes[name] for name in sorted(attributes) if "rocketmq" in name or "consumer" in name} == {
        "messaging.consumer.group.name": "billing",
        "messaging.rocketmq.message.keys": ("order-17",),
        "messaging.rocketmq.message.reconsume_times": 1,
        "messaging.rocketmq.message.tag": "paid",
    }


@both
def test_a_batch_is_a_span_with_a_link_to_each_producers(
    run: Run, spans: Callable[[], tuple[ReadableSpan, ...]]
) -> None:
    sent = []
    for _ in range(2):
        with trace.get_tracer("shop").start_as_current_span("checkout"):
            sent.append(message(properties=trace_properties()))
    run(tracing, lambda _: None, [*sent, message()])
    span = spans()[-1]
    assert dict(span.attributes or {})["messaging.batch.message_count"] == 3
    assert [link.context.span_id for link in span.links] == [one.context.span_id for one in spans()[:2]]


@both
def test_a_failure_is_recorded_in_the_span(run: Run, spans: Callable[[], tuple[ReadableSpan, ...]]) -> None:
    with pytest.raises(ZeroDivisionError):
        run(tracing, fail, message())
    assert spans()[0].status.status_code is trace.StatusCode.ERROR
