"""What is written with a transaction is sent after it, in order of its key; what fails stays visible."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.db import transaction
from django.utils import timezone

from consumer import producer
from consumer.outbox import delivery, leases
from consumer.outbox.models import OutboxMessage, OutboxState
from consumer.outbox.writing import OutboxFull
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.errors import MessageError
from remoting.wire.properties import Property, decode_properties
from tests.support.broker_thread import BrokerThread
from tests.support.children import free_port

pytestmark = pytest.mark.django_db
SEND = RequestCode.SEND_MESSAGE_V2


@pytest.fixture
def broker(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[BrokerThread]:
    monkeypatch.setattr(delivery, "LINGER_S", 0.0)
    with BrokerThread() as thread:
        settings.MQADMIN_NAMESRV = thread.broker.namesrv
        thread.call(thread.broker.create_topic, "orders", 4)
        yield thread
        producer.close()


def row(message_id: str) -> OutboxMessage:
    return OutboxMessage.objects.get(message_id=message_id)


def come_due() -> None:
    OutboxMessage.objects.update(next_attempt_at=timezone.now())


def refuse(broker: BrokerThread, body: bytes, code: int, times: int = 1_000) -> list[str]:
    """Lets the broker refuse messages with this body; returns a list that fills with the ids that it saw of them."""
    seen: list[str] = []

    def fault(request: Command) -> Command | None:
        if bytes(request.body) != body or len(seen) >= times:
            return None
        seen.append(decode_properties(request.ext_fields["i"])[Property.UNIQ_KEY])
        return response(request, code, "not now")

    broker.broker.faults[SEND] = fault
    return seen


def test_what_was_written_is_sent_as_it_is_with_the_id_that_the_writer_got(broker: BrokerThread) -> None:
    message_id = producer.send_by_outbox(
        "orders", {"id": 17}, tags="paid", keys=["a", "b"], properties={"shop": "north"}, delay_level=2
    )
    assert broker.messages("orders") == []
    assert producer.deliver_outbox() == 1
    (stored,) = broker.messages("orders")
    assert (stored.body, stored.unique_key, stored.tags, stored.keys) == (b'{"id":17}', message_id, "paid", ["a", "b"])
    assert (stored.properties["shop"], stored.properties[Property.DELAY]) == ("north", "2")
    assert row(message_id).state == OutboxState.SENT
    assert producer.deliver_outbox() == 0


def test_a_delay_counts_from_the_writing(broker: BrokerThread) -> None:
    before_ms = timezone.now().timestamp() * 1000
    producer.send_by_outbox("orders", b"x", delay_s=60)
    producer.deliver_outbox()
    (stored,) = broker.messages("orders")
    assert 59_000 < int(stored.properties[Property.TIMER_DELIVER_MS]) - before_ms < 120_000


@pytest.mark.django_db(transaction=True)
def test_only_what_was_committed_is_sent_and_celery_is_told_of_it(
    broker: BrokerThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr("celery.app.base.Celery.send_task", lambda _, name, **__: told.append(name))
    with transaction.atomic():
        producer.send_by_outbox("orders", b"undone")
        transaction.set_rollback(True)
    assert told == []
    with transaction.atomic():
        producer.send_by_outbox("orders", b"kept")
        producer.send_by_outbox("orders", b"kept, too")
        assert told == []
    assert told == ["consumer.tasks.deliver_outbox"]
    producer.deliver_outbox()
    assert {message.body for message in broker.messages("orders")} == {b"kept", b"kept, too"}


@pytest.mark.django_db(transaction=True)
def test_a_celery_that_is_away_disturbs_no_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object, **__: object) -> None:
        raise ConnectionError("Redis is away")

    monkeypatch.setattr("celery.app.base.Celery.send_task", away)
    monkeypatch.setattr("consumer.outbox.writing.WAKE_INTERVAL_S", 0.0)
    with transaction.atomic():
        message_id = producer.send_by_outbox("orders", b"x")
    assert row(message_id).state == OutboxState.PENDING


def test_messages_of_one_key_are_sent_in_order_and_into_one_queue(broker: BrokerThread) -> None:
    for number in range(30):
        producer.send_by_outbox("orders", b"%d" % number, order_key=f"key-{number % 3}")
    assert producer.deliver_outbox() == 30
    by_key: dict[int, list[int]] = {0: [], 1: [], 2: []}
    for queue, messages in broker.broker.queues.items():
        if queue.topic == "orders":
            for message in messages:
                by_key[int(message.body) % 3].append(int(message.body))
    assert by_key == {key: list(range(key, 30, 3)) for key in range(3)}


def test_a_message_that_fails_holds_back_those_of_its_key_alone(broker: BrokerThread) -> None:
    seen = refuse(broker, b"first", ResponseCode.SYSTEM_BUSY, times=1)
    first = producer.send_by_outbox("orders", b"first", order_key="a")
    second = producer.send_by_outbox("orders", b"second", order_key="a")
    other = producer.send_by_outbox("orders", b"other", order_key="b")
    assert producer.deliver_outbox() == 1
    assert row(other).state == OutboxState.SENT
    failed = row(first)
    assert (failed.state, failed.attempts) == (OutboxState.PENDING, 1)
    assert "SYSTEM_BUSY" in failed.last_error
    assert failed.next_attempt_at > timezone.now() - timedelta(seconds=1)
    assert (row(second).state, row(second).attempts) == (OutboxState.PENDING, 0)
    come_due()
    assert producer.deliver_outbox() == 2
    of_key = [message.body for message in broker.messages("orders") if message.body != b"other"]
    assert of_key == [b"first", b"second"]
    assert seen == [first]


def test_a_retry_carries_the_same_id(broker: BrokerThread) -> None:
    seen = refuse(broker, b"x", ResponseCode.SYSTEM_BUSY, times=2)
    message_id = producer.send_by_outbox("orders", b"x", order_key="k")
    for _ in range(3):
        producer.deliver_outbox()
        come_due()
    assert seen == [message_id] * 2
    assert [message.unique_key for message in broker.messages("orders")] == [message_id]


def test_what_no_broker_would_ever_take_is_given_up_at_once_and_its_key_goes_on(broker: BrokerThread) -> None:
    refuse(broker, b"bad", ResponseCode.MESSAGE_ILLEGAL)
    bad = producer.send_by_outbox("orders", b"bad", order_key="a")
    good = producer.send_by_outbox("orders", b"good", order_key="a")
    assert producer.deliver_outbox() == 1
    assert (row(bad).state, row(good).state) == (OutboxState.FAILED, OutboxState.SENT)
    assert "MESSAGE_ILLEGAL" in row(bad).last_error


def test_what_could_not_be_sent_for_too_long_is_given_up_visibly_and_may_be_retried(
    broker: BrokerThread, settings: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.CONSUMER_OUTBOX = {"give_up_after_s": 0}
    refuse(broker, b"x", ResponseCode.SYSTEM_BUSY, times=1)
    message_id = producer.send_by_outbox("orders", b"x", order_key="k")
    producer.deliver_outbox()
    assert row(message_id).last_error.startswith("given up after 0 s: ")
    call_command("outbox")
    shown = capsys.readouterr().out
    assert "database default: 0 pending, 0 sent, 1 failed" in shown
    assert f"failed {message_id} orders after 1: given up" in shown
    with pytest.raises(CommandError, match="none of these was given up"):
        call_command("outbox", "--retry", "nothing")
    call_command("outbox", "--retry", message_id)
    assert producer.deliver_outbox() == 1
    with pytest.raises(CommandError):
        call_command("outbox", "--retry", "all")


def test_without_any_broker_a_run_ends_early_and_everything_waits(broker: BrokerThread, settings: Any) -> None:
    settings.CONSUMER_PRODUCER = {"timeout_ms": 300}
    settings.MQADMIN_NAMESRV = f"127.0.0.1:{free_port()}"
    producer.close()
    for number in range(100):
        producer.send_by_outbox("orders", b"%d" % number)
    assert producer.deliver_outbox() == 0
    tried = OutboxMessage.objects.filter(attempts__gt=0).count()
    assert 1 <= tried <= delivery.LANES_MAX
    assert OutboxMessage.objects.filter(state=OutboxState.PENDING).count() == 100
    settings.CONSUMER_PRODUCER = {}
    settings.MQADMIN_NAMESRV = broker.broker.namesrv
    producer.close()
    come_due()
    assert producer.deliver_outbox() == 100


def test_each_cluster_gets_its_own_messages_and_one_that_is_away_holds_up_no_other(
    broker: BrokerThread, settings: Any
) -> None:
    settings.CONSUMER_PRODUCER = {"timeout_ms": 300}
    settings.MQADMIN_CLUSTERS = {"away": f"127.0.0.1:{free_port()}"}
    waiting = producer.send_by_outbox("orders", b"x", cluster="away")
    producer.send_by_outbox("orders", b"here")
    assert producer.deliver_outbox() == 1
    assert [message.body for message in broker.messages("orders")] == [b"here"]
    assert row(waiting).state == OutboxState.PENDING


def test_of_several_deliveries_one_sends(broker: BrokerThread) -> None:
    producer.send_by_outbox("orders", b"x")
    other = uuid4()
    assert leases.hold("default", "", other, timezone.now())
    assert producer.deliver_outbox() == 0
    leases.release("default", "", uuid4())
    assert producer.deliver_outbox() == 0
    leases.release("default", "", other)
    assert producer.deliver_outbox() == 1
    gone = timezone.now() - timedelta(seconds=leases.LEASE_S + 1)
    assert leases.hold("default", "", other, gone)
    producer.send_by_outbox("orders", b"after the holder was lost")
    assert producer.deliver_outbox() == 1


def test_rows_are_deleted_when_their_time_is_over(broker: BrokerThread, settings: Any) -> None:
    kept = producer.send_by_outbox("orders", b"kept")
    producer.deliver_outbox()
    OutboxMessage.objects.create(topic="orders", body=b"x", message_id="OLD", state=OutboxState.FAILED)
    OutboxMessage.objects.filter(message_id="OLD").update(ended_at=timezone.now() - timedelta(days=31))
    producer.deliver_outbox()
    assert [each.message_id for each in OutboxMessage.objects.all()] == [kept]
    settings.CONSUMER_OUTBOX = {"keep_sent_s": 0}
    producer.deliver_outbox()
    assert not OutboxMessage.objects.exists()


def test_a_full_outbox_takes_no_more(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("consumer.outbox.writing.COUNT_AGE_S", 0.0)
    settings.CONSUMER_OUTBOX = {"pending_max": 2}
    for _ in range(3):
        producer.send_by_outbox("orders", b"x")
    with pytest.raises(OutboxFull, match="more than 2 messages wait in the outbox of database 'default'"):
        producer.send_by_outbox("orders", b"x")


@pytest.mark.parametrize(
    ("topic", "body", "options", "text"),
    [
        ("a b", b"x", {}, "topic name 'a b'"),
        ("orders", b"", {}, "the body is empty"),
        ("orders", b"x", {"properties": {"TAGS": "x"}}, "is reserved"),
        ("orders", b"x", {"delay_level": 1, "delay_s": 1}, "exclude each other"),
        ("orders", b"x", {"order_key": "k" * 256}, "255 are allowed"),
    ],
)
def test_what_rocketmq_would_not_take_is_never_written(
    topic: str, body: bytes, options: dict[str, Any], text: str
) -> None:
    with pytest.raises(MessageError, match=text):
        producer.send_by_outbox(topic, body, **options)
    assert not OutboxMessage.objects.exists()


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"keep": 1}, "has no 'keep'; there are: databases"),
        ({"databases": ["other"]}, "database 'other' is not in DATABASES"),
        ({"pending_max": -1}, "pending_max is -1"),
        ({"databases": []}, "the outbox of database 'default' is not delivered"),
    ],
)
def test_settings_that_cannot_be_are_named(given: dict[str, Any], text: str, settings: Any) -> None:
    settings.CONSUMER_OUTBOX = given
    with pytest.raises(ImproperlyConfigured, match=text):
        producer.send_by_outbox("orders", b"x")
