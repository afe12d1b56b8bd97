from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from django.db import transaction

from consumer import DeadLetter, Later, Message, producer
from consumer.listener import Declaration, Registry
from consumer.testing import MemoryBroker
from remoting.wire.errors import MessageError


class Order(msgspec.Struct):
    cents: int


Declare = Callable[..., MemoryBroker]


@pytest.fixture
def declared() -> Iterator[Declare]:
    """Opens a broker whose groups are (group, function, options) on the topic `orders`."""
    opened: list[MemoryBroker] = []

    def declare(*groups: tuple[str, Callable[..., Any], dict[str, Any]]) -> MemoryBroker:
        registry = Registry()
        for group, function, options in groups:
            registry.declare(Declaration(group, "orders", function, options))  # type: ignore[arg-type]
        registry.freeze()
        opened.append(MemoryBroker(registry.groups).__enter__())
        return opened[0]

    yield declare
    for broker in opened:
        broker.__exit__()


@pytest.fixture(autouse=True)
def no_middleware(settings: Any) -> None:
    settings.CONSUMER_MIDDLEWARE = []


def test_what_is_sent_is_consumed_before_send_returns_by_each_group_that_wants_it(declared: Declare) -> None:
    seen: list[Any] = []

    async def mail(message: Message) -> None:
        await asyncio.sleep(0)
        seen.append(("mailed", message.text))

    mq = declared(
        ("billing", lambda message: seen.append(("billed", message.data)), {"tags": "paid", "body": Order}),
        ("mailing", mail, {}),
    )
    mq.send("orders", {"cents": 5}, tags="paid")
    assert seen == [("billed", Order(5)), ("mailed", '{"cents":5}')]
    mq.send("orders", {"cents": 6}, tags="created")
    assert seen[2:] == [("mailed", '{"cents":6}')]
    assert [message.data for message in mq.consumed("billing")] == [Order(5)]


def test_one_group_can_be_tested_without_the_others(declared: Declare) -> None:
    def refuse(message: Message) -> None:
        raise ValueError

    mq = declared(("billing", lambda message: None, {}), ("ledger", refuse, {"orderly": True}))
    mq.only("billing")
    mq.send("orders", "one")
    mq.run_until_quiet()  # the ledger would never be
    assert [one.group for one in mq.attempts] == ["billing"]
    with pytest.raises(KeyError, match="bill"):
        mq.only("bill")


def test_code_that_sends_by_the_producer_sends_here(declared: Declare) -> None:
    mq = declared(("billing", lambda message: None, {}))
    result = producer.send("orders", "one", keys="order-1")
    producer.send_oneway("orders", "two")
    producer.send_batch("orders", ["three", "four"])
    assert [message.text for message in mq.consumed("billing")] == ["one", "two", "three", "four"]
    assert (result.message_id, mq.sent[0].keys) == (mq.sent[0].id, ("order-1",))


async def test_async_code_sends_here_too(declared: Declare) -> None:
    async def mail(message: Message) -> None:
        await asyncio.sleep(0)

    mq = declared(("mailing", mail, {}))
    await producer.asend("orders", "one")
    assert [message.text for message in mq.consumed("mailing")] == ["one"]


@pytest.mark.django_db(transaction=True)
def test_what_is_sent_on_commit_comes_after_the_commit(declared: Declare) -> None:
    mq = declared(("billing", lambda message: None, {}))
    with transaction.atomic():
        producer.send_on_commit("orders", "one")
        assert not mq.sent
    assert [message.text for message in mq.consumed("billing")] == ["one"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_the_outbox_is_delivered_here(declared: Declare) -> None:
    mq = declared(("billing", lambda message: None, {}))
    producer.send_by_outbox("orders", "one")
    assert not mq.sent
    assert producer.deliver_outbox() == 1
    assert [message.text for message in mq.consumed("billing")] == ["one"]


def test_retries_come_at_their_time_and_end_as_a_dead_letter(declared: Declare) -> None:
    def fail(message: Message) -> None:
        raise ZeroDivisionError

    mq = declared(("billing", fail, {"max_reconsume_times": 2}))
    mq.send("orders", "one")
    times: list[float] = [mq.now_s]
    while mq.waiting:
        before = len(mq.failures)
        mq.pass_time(1)
        times += [mq.now_s] * (len(mq.failures) - before)
    assert times == [0, 10, 40]
    assert [one.message.reconsume_times for one in mq.failures] == [0, 1, 2]
    assert [message.text for message in mq.dead_letters("billing")] == ["one"]
    assert not mq.consumed("billing")


def test_all_sixteen_retries_take_no_time_at_all(declared: Declare) -> None:
    def fail(message: Message) -> None:
        raise ZeroDivisionError

    mq = declared(("billing", fail, {}))
    mq.send("orders", "one")
    assert mq.run_until_quiet() == sum(
        (10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200)
    )
    assert len(mq.failures) == 17


def test_a_listener_says_itself_when_a_message_comes_again_or_never(declared: Declare) -> None:
    def listen(message: Message) -> None:
        if message.text == "never":
            raise DeadLetter
        if not message.reconsume_times:
            raise Later(delay_s=60)

    mq = declared(("billing", listen, {"dead_letter_on": (KeyError,)}))
    mq.send("orders", "never")
    mq.send("orders", "once more")
    assert [message.text for message in mq.dead_letters("billing")] == ["never"]
    mq.pass_time(59.9)
    assert not mq.consumed("billing")
    mq.pass_time(0.1)
    assert [message.text for message in mq.consumed("billing")] == ["once more"]


def test_a_body_that_does_not_decode_fails_with_that_reason(declared: Declare) -> None:
    mq = declared(("billing", lambda message: None, {"body": Order}))
    mq.send("orders", {"cents": "many"})
    assert "the body is no Order" in str(mq.failures[0].error)


def test_a_queue_in_order_waits_for_its_failed_message(declared: Declare) -> None:
    seen: list[str] = []

    def listen(message: Message) -> None:
        seen.append(f"{message.text} {message.reconsume_times}")
        if message.text == "one" and message.reconsume_times < 2:
            raise Later

    mq = declared(("billing", listen, {"orderly": True, "suspend_ms": 1000}))
    for text in ("one", "two", "three"):
        mq.send("orders", text)
    assert seen == ["one 0"]
    mq.pass_time(1)
    assert seen == ["one 0", "one 1"]
    mq.pass_time(1)
    assert seen == ["one 0", "one 1", "one 2", "two 0", "three 0"]


def test_a_broadcasting_group_drops_what_fails(declared: Declare) -> None:
    def fail(message: Message) -> None:
        raise ZeroDivisionError

    mq = declared(("billing", fail, {"broadcasting": True}))
    mq.send("orders", "one")
    assert (len(mq.failures), mq.waiting, mq.dead_letters("billing")) == (1, 0, [])


def test_a_batch_listener_gets_what_was_held_and_says_how_much_it_consumed(declared: Declare) -> None:
    sizes: list[int] = []

    def listen(messages: list[Message]) -> None:
        sizes.append(len(messages))
        if len(messages) == 3:
            raise Later(consumed=2)

    mq = declared(("billing", listen, {"batch_size": 3}))
    with mq.held():
        for number in range(5):
            mq.send("orders", str(number))
        assert not sizes
    mq.run_until_quiet()
    assert sizes == [3, 2, 1]
    assert sorted(message.text for message in mq.consumed("billing")) == ["0", "1", "2", "3", "4"]


def test_a_delayed_message_comes_when_its_time_has_passed(declared: Declare) -> None:
    mq = declared(("billing", lambda message: None, {}))
    mq.send("orders", "level", delay_level=3)
    mq.send("orders", "seconds", delay_s=5)
    mq.pass_time(5)
    assert [message.text for message in mq.consumed("billing")] == ["seconds"]
    mq.pass_time(5)
    assert [message.text for message in mq.consumed("billing")] == ["seconds", "level"]


def test_a_listener_that_sends_is_followed_by_what_it_sent(declared: Declare) -> None:
    def listen(message: Message) -> None:
        if message.text == "one":
            producer.send("orders", "two")
            producer.send("orders", "three")

    mq = declared(("billing", listen, {}))
    mq.send("orders", "one")
    assert [message.text for message in mq.consumed("billing")] == ["one", "two", "three"]


@pytest.mark.parametrize("error", [SystemExit(3), GeneratorExit(), asyncio.CancelledError()], ids=repr)
@pytest.mark.parametrize("is_async", [True, False], ids=["async", "plain"])
def test_what_is_no_exception_is_a_failure_as_in_a_consumer(
    declared: Declare, error: BaseException, is_async: bool
) -> None:
    def listen(message: Message) -> None:
        raise error

    async def listen_async(message: Message) -> None:
        raise error

    mq = declared(("billing", listen_async if is_async else listen, {"max_reconsume_times": 0}))
    mq.send("orders", "one")
    assert [type(one.error) for one in mq.failures] == [type(error)]
    assert [one.text for one in mq.dead_letters("billing")] == ["one"]


def test_what_pytest_raises_in_a_listener_ends_the_test(declared: Declare) -> None:
    mq = declared(("billing", lambda message: pytest.fail("not this one"), {}))
    with pytest.raises(pytest.fail.Exception, match="not this one"):
        mq.send("orders", "one")


@pytest.mark.slow
def test_listeners_that_never_come_to_an_end_are_ended(declared: Declare) -> None:
    def listen(message: Message) -> None:
        raise Later(delay_level=1)

    mq = declared(("billing", listen, {"max_reconsume_times": 2**31 - 1}))
    mq.send("orders", "one")
    with pytest.raises(AssertionError, match="called 10000 times"):
        mq.run_until_quiet()


def test_an_sql_filter_is_said_to_be_beyond_it_and_gone_past(declared: Declare) -> None:
    mq = declared(("billing", lambda message: None, {"sql": "a > 1"}))
    with pytest.raises(NotImplementedError, match=r"by deliver\(\)"):
        mq.send("orders", "one")
    mq.deliver("billing", "orders", "two", properties={"a": "2"})
    assert [message.text for message in mq.consumed("billing")] == ["two"]


def test_what_rocketmq_would_not_take_is_refused_here_too(declared: Declare) -> None:
    mq = declared()
    with pytest.raises(MessageError, match="or/ders"):
        mq.send("or/ders", "one")
    with pytest.raises(TypeError, match="a body is bytes"):
        mq.send("orders", 17)


@pytest.mark.django_db(transaction=True)
def test_middleware_and_once_are_around_each_call(declared: Declare, settings: Any) -> None:
    settings.CONSUMER_MIDDLEWARE = ["consumer.middleware.connections.database_connections"]
    seen: list[str] = []
    mq = declared(("billing", lambda message: seen.append(message.id), {"once": True}))
    mq.send("orders", "one")
    assert len(seen) == 1


def test_after_it_the_producer_is_the_projects_own_again(declared: Declare) -> None:
    with MemoryBroker({}) as mq:
        producer.send("orders", "one")
        assert len(mq.sent) == 1
    with declared() as other:
        producer.send("orders", "two")
        assert (len(mq.sent), len(other.sent)) == (1, 1)
