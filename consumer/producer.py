"""Sending from Django code: sync, async, once the transaction has been committed, or with it, through the outbox.

    from consumer import producer

    producer.send("orders", {"id": 17}, tags="paid", keys="order-17")
    producer.send("orders", {"id": 17}, order_key="order-17")
    producer.send("reminders", {"id": 17}, delay_s=900)
    producer.send_batch("orders", [{"id": 17}, {"id": 18}])
    await producer.asend("orders", b"…", delay_level=3)
    answer = producer.request("prices", {"article": 3}).json()
    producer.send_on_commit("orders", {"id": 17}, tags="paid")
    producer.send_by_outbox("orders", {"id": 17}, order_key="order-17")

One producer per process and cluster, on an event loop in a thread of its own, made at the first send; a forked process
makes its own. Sent to the name servers of MQADMIN_NAMESRV, or with `cluster=` to those that MQADMIN_CLUSTERS names.
docs/PRODUCER.md teaches all of it; CONSUMER_PRODUCER (`consumer/producer_settings.py`) says how messages are sent.
"""

from __future__ import annotations

import atexit
import json
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, Unpack, cast

from celery import current_app
from django.core.serializers.json import DjangoJSONEncoder
from django.db import transaction

from consumer.background_producer import BackgroundProducers
from consumer.conf import jobs_queue
from consumer.group_key import DEFAULT_CLUSTER
from consumer.outbox.delivery import deliver
from consumer.outbox.schedule import DELIVERY_EXPIRES_S, DELIVERY_TASK
from consumer.outbox.writing import OutboxWriter
from remoting.client.outgoing import Message, MessageOptions
from remoting.client.producer import Producer
from remoting.client.received_message import ReceivedMessage
from remoting.client.send_result import SendResult

Body = bytes | str | dict[str, Any] | list[Any]

REQUEST_TIMEOUT_S = 3.0


class HasProperties(Protocol):
    """A message as a listener gets it, or as a pull consumer does."""

    @property
    def properties(self) -> Mapping[str, str]: ...


_producers = BackgroundProducers()
atexit.register(_producers.close)


def _begin_delivery() -> None:
    current_app.send_task(DELIVERY_TASK, queue=jobs_queue(), expires=DELIVERY_EXPIRES_S, retry=False)


_outbox = OutboxWriter(_begin_delivery)


def send(
    topic: str,
    body: Body,
    *,
    cluster: str = DEFAULT_CLUSTER,
    order_key: str | None = None,
    **options: Unpack[MessageOptions],
) -> SendResult:
    """Sends a message and returns when a broker has stored it. A text is sent as UTF-8, a dict or list as JSON.

    `options`: `tags`, `keys`, `properties`, and one of `delay_level` (1 to 18: 1s 5s 10s 30s 1m 2m … 2h), `delay_s`
    (seconds) and `deliver_at` (an aware datetime); see `remoting.client.outgoing.Message`. All messages with one
    `order_key` go to one queue, as Java's `SelectMessageQueueByHash` chooses it; that queue only is tried, once.

    Raises MessageError for what RocketMQ would not take, ClientError when it could not be stored, RuntimeError in
    async code.
    """
    return _producers.of(cluster).run(_sending(topic, body, order_key, options))


async def asend(
    topic: str,
    body: Body,
    *,
    cluster: str = DEFAULT_CLUSTER,
    order_key: str | None = None,
    **options: Unpack[MessageOptions],
) -> SendResult:
    """Sends as `send` does, for async code."""
    return await _producers.of(cluster).arun(_sending(topic, body, order_key, options))


def send_oneway(topic: str, body: Body, *, cluster: str = DEFAULT_CLUSTER, **options: Unpack[MessageOptions]) -> str:
    """Sends without waiting for the broker's answer, so nobody hears of a loss; returns the message's id."""
    encoded = encode_body(body)
    return _producers.of(cluster).run(lambda producer: producer.send_oneway(topic, encoded, **options))


async def asend_oneway(
    topic: str, body: Body, *, cluster: str = DEFAULT_CLUSTER, **options: Unpack[MessageOptions]
) -> str:
    """Sends as `send_oneway` does, for async code."""
    encoded = encode_body(body)
    return await _producers.of(cluster).arun(lambda producer: producer.send_oneway(topic, encoded, **options))


def send_batch(topic: str, messages: Iterable[Body | Message], *, cluster: str = DEFAULT_CLUSTER) -> list[SendResult]:
    """Sends many messages in as few requests as they fit into, 4 MiB each; returns one result per message, in order.

    Each is a body as for `send`, or a `Message` with its tags and keys; none may be delayed. Raises as `send`;
    SendFailed has in `sent` what was stored before the part that failed.
    """
    batch = [_message(each) for each in messages]
    return _producers.of(cluster).run(lambda producer: producer.send_batch(topic, batch))


async def asend_batch(
    topic: str, messages: Iterable[Body | Message], *, cluster: str = DEFAULT_CLUSTER
) -> list[SendResult]:
    """Sends as `send_batch` does, for async code."""
    batch = [_message(each) for each in messages]
    return await _producers.of(cluster).arun(lambda producer: producer.send_batch(topic, batch))


def request(
    topic: str,
    body: Body,
    *,
    timeout_s: float = REQUEST_TIMEOUT_S,
    cluster: str = DEFAULT_CLUSTER,
    order_key: str | None = None,
    **options: Unpack[MessageOptions],
) -> ReceivedMessage:
    """Sends a request and returns the reply of whoever consumed it (`reply`, or Java's `MessageUtil`).

    `timeout_s` covers sending and waiting. Raises as `send`, and NoReply: the request may have been carried out.
    """
    return _producers.of(cluster).run(_requesting(topic, body, timeout_s, order_key, options))


async def arequest(
    topic: str,
    body: Body,
    *,
    timeout_s: float = REQUEST_TIMEOUT_S,
    cluster: str = DEFAULT_CLUSTER,
    order_key: str | None = None,
    **options: Unpack[MessageOptions],
) -> ReceivedMessage:
    """Requests as `request` does, for async code."""
    return await _producers.of(cluster).arun(_requesting(topic, body, timeout_s, order_key, options))


def reply(message: HasProperties, body: Body, *, cluster: str = DEFAULT_CLUSTER) -> SendResult:
    """Replies to a request that a listener got, on the cluster that it came from.

    Raises MessageError when the message is no request, SendFailed when the one who asked is gone.
    """
    encoded = encode_body(body)
    return _producers.of(cluster).run(lambda producer: producer.reply(message.properties, encoded))


async def areply(message: HasProperties, body: Body, *, cluster: str = DEFAULT_CLUSTER) -> SendResult:
    """Replies as `reply` does, for async code."""
    encoded = encode_body(body)
    return await _producers.of(cluster).arun(lambda producer: producer.reply(message.properties, encoded))


def recall(topic: str, recall_handle: str, *, cluster: str = DEFAULT_CLUSTER) -> str:
    """Calls a message that `delay_s` or `deliver_at` delays back, by its `SendResult.recall_handle`; returns its id.

    Raises BrokerRefused when the broker doesn't recall: the message was delivered, or recalling is switched off.
    """
    return _producers.of(cluster).run(lambda producer: producer.recall(topic, recall_handle))


async def arecall(topic: str, recall_handle: str, *, cluster: str = DEFAULT_CLUSTER) -> str:
    """Recalls as `recall` does, for async code."""
    return await _producers.of(cluster).arun(lambda producer: producer.recall(topic, recall_handle))


def send_on_commit(
    topic: str,
    body: Body,
    *,
    using: str | None = None,
    cluster: str = DEFAULT_CLUSTER,
    order_key: str | None = None,
    **options: Unpack[MessageOptions],
) -> None:
    """Sends when the transaction of database `using` is committed, at once outside of one, never after a rollback.

    The database has the change before the broker has the message: when the send fails then, it raises, and the
    message is lost unless the caller handles that. `send_by_outbox` closes that gap. `options` as for `send`.
    """
    encoded = encode_body(body)
    sending = partial(send, topic, encoded, cluster=cluster, order_key=order_key, **options)
    transaction.on_commit(sending, using=using)


def send_by_outbox(
    topic: str,
    body: Body,
    *,
    using: str | None = None,
    cluster: str = DEFAULT_CLUSTER,
    order_key: str | None = None,
    **options: Unpack[MessageOptions],
) -> str:
    """Writes a message into the outbox table, in the transaction of database `using`; returns the message's id.

    It is sent if, and only if, that transaction is committed: by Celery, soon after, at least once and always with the
    same id, in order with the others of its topic and `order_key`. `options` as for `send`; seconds of a delay count
    from now. No broker is asked, so it works while none is there. For sync code, as transactions are.

    Raises MessageError for what RocketMQ would not take, OutboxFull when too many wait.
    """
    return _outbox.write(topic, encode_body(body), cluster=cluster, order_key=order_key, using=using, **options)


def deliver_outbox() -> int:
    """Sends what waits in the outbox now, as the Celery task does; returns how many messages were sent."""
    return deliver(_producers)


def replace_producers(producers: Any) -> Callable[[], None]:
    """Has everything sent by other producers, as the test kit does; returns what restores those of before."""
    global _producers
    before, _producers = _producers, producers

    def restore() -> None:
        global _producers
        _producers = before

    return restore


def close() -> None:
    """Closes this process's producers, as its exit does; the next send opens others."""
    _producers.close()


def _sending(
    topic: str, body: Body, order_key: str | None, options: MessageOptions
) -> Callable[[Producer], Coroutine[Any, Any, SendResult]]:
    encoded = encode_body(body)
    return lambda producer: producer.send(topic, encoded, order_key=order_key, **options)


def _requesting(
    topic: str, body: Body, timeout_s: float, order_key: str | None, options: MessageOptions
) -> Callable[[Producer], Coroutine[Any, Any, ReceivedMessage]]:
    encoded, timeout_ms = encode_body(body), round(timeout_s * 1000)
    return lambda producer: producer.request(topic, encoded, order_key=order_key, timeout_ms=timeout_ms, **options)


def _message(each: Body | Message) -> Message:
    if isinstance(each, Message):
        return replace(each, body=encode_body(cast(Body, each.body)))
    return Message(encode_body(each))


def encode_body(body: Body) -> bytes:
    """Raises TypeError for what is neither bytes, a text, a dict nor a list."""
    match body:
        case bytes():
            return body
        case str():
            return body.encode()
        case dict() | list():
            return json.dumps(body, cls=DjangoJSONEncoder, ensure_ascii=False, separators=(",", ":")).encode()
    raise TypeError(f"a body is bytes, a text, a dict or a list, not {type(body).__name__}")
