"""Sending from Django code: sync, async, or once the transaction has been committed.

    from consumer import producer

    producer.send("orders", {"id": 17}, tags="paid", keys="order-17")
    producer.send_on_commit("orders", {"id": 17}, tags="paid")
    producer.send("reminders", {"id": 17}, delay_s=900)
    await producer.asend("orders", b"…", delay_level=3)

One producer per process, on an event loop in a thread of its own, made at the first send; a forked process makes its
own. Sent to the name servers of MQADMIN_NAMESRV.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import threading
from functools import partial
from typing import Any, Unpack

from django.core.serializers.json import DjangoJSONEncoder
from django.db import transaction

from consumer.conf import namesrv
from remoting.client.outgoing import MessageOptions
from remoting.client.producer import Producer
from remoting.client.send_result import SendResult

Body = bytes | str | dict[str, Any] | list[Any]

PRODUCER_GROUP = "django"
START_TIMEOUT_S = 10.0
CLOSE_TIMEOUT_S = 3.0


class BackgroundProducer:
    """A producer whose event loop runs in a daemon thread. Safe to call from any thread, and after a fork."""

    def __init__(self, group: str = PRODUCER_GROUP) -> None:
        self._group = group
        self._reset()
        os.register_at_fork(after_in_child=self._reset)

    def send(self, topic: str, body: bytes, **options: Unpack[MessageOptions]) -> SendResult:
        self._refuse_on_event_loop()
        return asyncio.run_coroutine_threadsafe(self._send(topic, body, options), self._running_loop()).result()

    async def asend(self, topic: str, body: bytes, **options: Unpack[MessageOptions]) -> SendResult:
        loop = await asyncio.to_thread(self._running_loop)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._send(topic, body, options), loop))

    def close(self) -> None:
        """Unregisters from the brokers and ends the thread; the next send starts another."""
        with self._lock:
            loop, thread, producer = self._loop, self._thread, self._producer
            self._reset()
        if loop is None or thread is None:
            return
        if producer is not None:
            try:
                asyncio.run_coroutine_threadsafe(producer.close(), loop).result(CLOSE_TIMEOUT_S)
            except TimeoutError:
                pass
        loop.call_soon_threadsafe(loop.stop)
        thread.join(CLOSE_TIMEOUT_S)

    def _reset(self) -> None:
        """Drops thread and sockets; runs in a forked child too, which has no use for its parent's."""
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._producer: Producer | None = None

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_run, args=(loop,), name="producer", daemon=True)
                self._thread.start()
                starting = asyncio.run_coroutine_threadsafe(_started_producer(namesrv(), self._group), loop)
                self._producer = starting.result(START_TIMEOUT_S)
                self._loop = loop
            return self._loop

    async def _send(self, topic: str, body: bytes, options: MessageOptions) -> SendResult:
        producer = self._producer
        if producer is None:
            raise ConnectionError("the producer was closed")
        return await producer.send(topic, body, **options)

    @staticmethod
    def _refuse_on_event_loop() -> None:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return
        raise RuntimeError("producer.send() would block the event loop: await producer.asend() in async code")


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.close()


async def _started_producer(namesrv: str, group: str) -> Producer:
    producer = Producer(namesrv, group)
    await producer.start()
    return producer


_producer = BackgroundProducer()
atexit.register(_producer.close)


def send(topic: str, body: Body, **options: Unpack[MessageOptions]) -> SendResult:
    """Sends a message and returns when a broker has stored it. A text is sent as UTF-8, a dict or list as JSON.

    `options`: `tags`, `keys`, `properties`, and one of `delay_level` (1 to 18: 1s 5s 10s 30s 1m 2m … 2h), `delay_s`
    (seconds) and `deliver_at` (an aware datetime); see `remoting.client.outgoing.Message`.

    Raises MessageError for what RocketMQ would not take, ClientError when it could not be stored, RuntimeError in
    async code.
    """
    return _producer.send(topic, encode_body(body), **options)


async def asend(topic: str, body: Body, **options: Unpack[MessageOptions]) -> SendResult:
    """Sends as `send` does, for async code."""
    return await _producer.asend(topic, encode_body(body), **options)


def send_on_commit(topic: str, body: Body, *, using: str | None = None, **options: Unpack[MessageOptions]) -> None:
    """Sends when the transaction of database `using` is committed, at once outside of one, never after a rollback.

    The database has the change before the broker has the message: when the send fails then, it raises, and the
    message is lost unless the caller handles that. `options` as for `send`.
    """
    transaction.on_commit(partial(_producer.send, topic, encode_body(body), **options), using=using)


def close() -> None:
    """Closes this process's producer, as its exit does; the next send opens another."""
    _producer.close()


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
