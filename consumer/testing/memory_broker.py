"""A broker in memory for tests of listeners: what is sent is consumed before `send` returns.

What it has in common with a broker and a consumer: tags, bodies by declared type, middleware, `once`, batches, delayed
messages, retries with their delays, failure policies, dead letters, order (a queue waits for its failed message),
broadcasting (what fails is dropped). What it has not: several members, SQL92 expressions (`deliver` goes past them),
and time: `pass_time` is what lets it pass. Sends by `consumer.producer` come here while it is open.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
import uuid
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeVar, Unpack

import msgspec

from consumer.engine.listening import Listener, NotAwaited, call_sync
from consumer.engine.message import Message
from consumer.engine.outcomes import DELAY_LEVELS_S, Later
from consumer.group_key import DEFAULT_CLUSTER
from consumer.listener import GroupSpec, registry
from remoting.client.outgoing import Message as Outgoing
from remoting.client.outgoing import MessageOptions, complete_properties
from remoting.client.send_result import SendResult, SendStatus
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.names import check_topic
from remoting.wire.properties import Property
from remoting.wire.tags import parse_tags

T = TypeVar("T")

BROKER_NAME = "memory"
# A first retry waits at level 3, each further one at the next.
FIRST_RETRY_LEVEL = 3
RECONSUME_TIMES = 16
# Of `run_until_quiet`: listeners that answer each message with another would never be quiet.
CALLS_MAX = 10_000
# Failures of a message besides every Exception, as in a consumer. Ctrl-C and what pytest raises end the test.
OF_LISTENERS = (SystemExit, GeneratorExit, asyncio.CancelledError)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One call of a listener with one message; `error` None when it was consumed."""

    group: str
    message: Message
    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class _Delivery:
    spec: GroupSpec
    listener: Listener
    message: Message


@dataclass(slots=True)
class _OrderedQueue:
    """Messages of an ordered group that wait behind one that failed."""

    waiting: deque[_Delivery] = field(default_factory=deque)
    is_suspended: bool = False


class MemoryBroker:
    """Use it as a context manager, or the fixture `mq`. `groups`: other groups than the project's declared ones."""

    def __init__(self, groups: Mapping[str, GroupSpec] | None = None) -> None:
        self._groups = groups
        self.attempts: list[Attempt] = []
        self.sent: list[Message] = []
        self.now_s = 0.0
        self._dead: list[tuple[str, Message]] = []
        self._ready: deque[_Delivery] = deque()
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._offsets: dict[MessageQueue, int] = {}
        self._ordered: dict[tuple[str, MessageQueue | None], _OrderedQueue] = {}
        self._calls: dict[tuple[str, str], Listener] = {}
        self._is_running = False
        self._holds = 0

    def __enter__(self) -> MemoryBroker:
        from consumer import producer  # needs Django's settings

        self._restore = producer.replace_producers(_Producers(self))
        return self

    def __exit__(self, *_: object) -> None:
        self._restore()

    # what tests do

    def send(self, topic: str, body: Any, *, cluster: str = DEFAULT_CLUSTER, **options: Unpack[MessageOptions]) -> str:
        """Sends as `producer.send` does, and returns the message's id when its listeners have run."""
        from consumer.producer import encode_body  # needs Django's settings

        result = self.store(topic, Outgoing(encode_body(body), **options), cluster, None)
        self.run()
        return result.message_id

    def deliver(self, group: str, topic: str, body: Any, **options: Unpack[MessageOptions]) -> str:
        """Gives a message to one group's listener, whatever its tags or SQL92 expression say; `group` is its key."""
        from consumer.producer import encode_body  # needs Django's settings

        spec = self.groups[group]
        message = self._stored(topic, Outgoing(encode_body(body), **options), None)
        self._ready.append(_Delivery(spec, spec.listeners[topic], message))
        self.run()
        return message.id

    def pass_time(self, seconds: float) -> None:
        """Lets time pass: retries and delayed messages that fall due meanwhile are consumed, each at its time."""
        end_s = self.now_s + seconds
        while self._due and self._due[0][0] <= end_s:
            self._next_due()
        self.now_s = end_s

    def run_until_quiet(self) -> float:
        """Lets time pass until nothing waits, retries included; returns how many seconds that took."""
        began_s, calls = self.now_s, len(self.attempts)
        while self._due:
            self._next_due()
            if len(self.attempts) - calls > CALLS_MAX:
                raise AssertionError(f"listeners were called {CALLS_MAX} times, and messages still wait")
        return self.now_s - began_s

    @contextmanager
    def held(self) -> Iterator[None]:
        """Inside, nothing is consumed; then everything at once, batch listeners get their batches."""
        self._holds += 1
        try:
            yield
        finally:
            self._holds -= 1
        self.run()

    @property
    def groups(self) -> Mapping[str, GroupSpec]:
        return registry.groups if self._groups is None else self._groups

    @property
    def failures(self) -> list[Attempt]:
        return [one for one in self.attempts if one.error is not None]

    @property
    def waiting(self) -> int:
        """How many retries and delayed messages wait for their time."""
        return len(self._due)

    def only(self, *groups: str) -> None:
        """Gives what is sent from now on to these groups alone, by their keys, whoever else listens."""
        self._groups = {group: self.groups[group] for group in groups}

    def consumed(self, group: str) -> list[Message]:
        """Returns what the group, by its key, has consumed."""
        return [one.message for one in self.attempts if one.group == group and one.error is None]

    def dead_letters(self, group: str) -> list[Message]:
        return [message for key, message in self._dead if key == group]

    # what producers and deliveries do

    def store(
        self, topic: str, outgoing: Outgoing, cluster: str, order_key: str | None, message_id: str | None = None
    ) -> SendResult:
        """Takes a message; it is consumed by `run`. Raises MessageError for what RocketMQ would not take."""
        check_topic(topic)
        message = self._stored(topic, outgoing, order_key, message_id)
        self.sent.append(message)
        delay_s = self._delay_s(outgoing)
        if delay_s > 0:
            self._later(delay_s, lambda: self._route(message, cluster))
        else:
            self._route(message, cluster)
        assert message.queue is not None
        return SendResult(message.id, message.id, message.queue, message.queue_offset, SendStatus.SEND_OK)

    def run(self) -> None:
        """Consumes what is ready. What listeners send meanwhile comes after what was there before."""
        if self._is_running or self._holds:
            return
        self._is_running = True
        try:
            while self._ready:
                self._consume(self._take())
        finally:
            self._is_running = False

    def _stored(self, topic: str, outgoing: Outgoing, order_key: str | None, message_id: str | None = None) -> Message:
        message_id = message_id or uuid.uuid4().hex.upper()
        queue = MessageQueue(topic, BROKER_NAME, hash(order_key) % 4 if order_key is not None else 0)
        offset = self._offsets[queue] = self._offsets.get(queue, -1) + 1
        return Message(
            topic=topic,
            body=outgoing.body,
            data=outgoing.body,
            properties=MappingProxyType(complete_properties(outgoing, message_id)),
            id=message_id,
            born_ms=time.time_ns() // 1_000_000,
            queue=queue,
            queue_offset=offset,
        )

    def _delay_s(self, outgoing: Outgoing) -> float:
        if outgoing.delay_level:
            return DELAY_LEVELS_S[min(outgoing.delay_level, len(DELAY_LEVELS_S)) - 1]
        if outgoing.deliver_at is not None:
            return outgoing.deliver_at.timestamp() - time.time()
        return outgoing.delay_s or 0.0

    def _route(self, message: Message, cluster: str) -> None:
        for spec in self.groups.values():
            listener = spec.listeners.get(message.topic)
            if listener is None or spec.cluster != cluster:
                continue
            if listener.sql is not None:
                raise NotImplementedError(
                    f"group {spec.key!r} filters {message.topic!r} by {listener.sql!r}, which this broker cannot"
                    " evaluate: give its listener the message by deliver()"
                )
            expression = parse_tags(listener.tags)
            if expression.matches_all or expression.matches(message.properties.get(Property.TAGS)):
                self._ready.append(_Delivery(spec, listener, message))

    def _take(self) -> list[_Delivery]:
        """Takes the next message, and for a batch listener those behind it that are for it, too."""
        first = self._ready.popleft()
        if first.listener.batch_size is None:
            return [first]
        same = [one for one in self._ready if one.listener is first.listener][: first.listener.batch_size - 1]
        for one in same:
            self._ready.remove(one)
        return [first, *same]

    def _consume(self, batch: list[_Delivery]) -> None:
        spec = batch[0].spec
        if not spec.options["orderly"]:
            self._call(batch)
            return
        queue = self._ordered.setdefault((spec.key, batch[0].message.queue), _OrderedQueue())
        queue.waiting.extend(batch)
        if not queue.is_suspended:
            self._call_in_order(queue)

    def _call_in_order(self, queue: _OrderedQueue) -> None:
        queue.is_suspended = False
        while queue.waiting and not queue.is_suspended:
            self._call([queue.waiting.popleft()], queue)

    def _call(self, batch: list[_Delivery], queue: _OrderedQueue | None = None) -> None:
        spec, listener = batch[0].spec, self._wrapped(batch[0].spec, batch[0].listener)
        ready: list[_Delivery] = []
        for one in batch:
            try:
                data = listener.decode(one.message.body) if listener.decode else one.message.body
            except Exception as wrong:
                self._failed(one, wrong, queue)
            else:
                ready.append(_Delivery(spec, one.listener, msgspec.structs.replace(one.message, data=data)))
        if not ready:
            return
        messages = [one.message for one in ready]
        error = _error_of(listener, messages if listener.batch_size is not None else messages[0])
        consumed = len(ready) if error is None else error.consumed if isinstance(error, Later) else 0
        self.attempts += [Attempt(spec.key, one.message) for one in ready[:consumed]]
        for one in ready[consumed:]:
            assert error is not None
            self._failed(one, error, queue)

    def _failed(self, one: _Delivery, error: BaseException, queue: _OrderedQueue | None) -> None:
        spec, message = one.spec, one.message
        self.attempts.append(Attempt(spec.key, message, error))
        if spec.options["broadcasting"]:
            return
        limit: float | None = spec.options["max_reconsume_times"]
        if limit is None:
            limit = RECONSUME_TIMES if queue is None else float("inf")
        level = one.listener.failures.delay_level(error)
        if level < 0 or message.reconsume_times >= limit:
            self._dead.append((spec.key, message))
            return
        returned = msgspec.structs.replace(message, reconsume_times=message.reconsume_times + 1)
        again = _Delivery(spec, one.listener, returned)
        if queue is not None:
            queue.waiting.appendleft(again)
            queue.is_suspended = True
            self._later(spec.options["suspend_ms"] / 1000, lambda: self._call_in_order(queue))
            return
        level = level or FIRST_RETRY_LEVEL + message.reconsume_times
        self._later(DELAY_LEVELS_S[min(level, len(DELAY_LEVELS_S)) - 1], lambda: self._ready.append(again))

    def _wrapped(self, spec: GroupSpec, listener: Listener) -> Listener:
        """Returns the listener inside of the project's middleware, as its consumer would call it."""
        from consumer.assembly import with_middleware  # needs Django's models
        from consumer.conf import middleware_paths  # needs Django's settings
        from consumer.middleware.chain import load  # needs Django's settings

        key = (spec.key, listener.topic)
        if key not in self._calls:
            self._calls[key] = with_middleware(spec, listener, load(middleware_paths()))
        return self._calls[key]

    def _later(self, delay_s: float, due: Callable[[], None]) -> None:
        heapq.heappush(self._due, (self.now_s + delay_s, next(self._numbers), due))

    def _next_due(self) -> None:
        due_s, _number, due = heapq.heappop(self._due)
        self.now_s = max(self.now_s, due_s)
        due()
        self.run()


class _Producers:
    """Stands in for `BackgroundProducers` of `consumer.producer`."""

    def __init__(self, broker: MemoryBroker) -> None:
        self._broker = broker

    def of(self, cluster: str = DEFAULT_CLUSTER, group: str | None = None) -> _Runner:  # noqa: ARG002
        return _Runner(self._broker, cluster)

    def close(self) -> None: ...


class _Runner:
    def __init__(self, broker: MemoryBroker, cluster: str) -> None:
        self._broker = broker
        self._producer = _Producer(broker, cluster)

    def run(self, use: Callable[[Any], Coroutine[Any, Any, T]]) -> T:
        result = _on_a_loop(use(self._producer))
        self._broker.run()
        return result

    async def arun(self, use: Callable[[Any], Coroutine[Any, Any, T]]) -> T:
        result = await use(self._producer)
        self._broker.run()
        return result


class _Producer:
    """What `consumer.producer` asks of a producer; what it has not cannot be asked of a broker in memory."""

    def __init__(self, broker: MemoryBroker, cluster: str) -> None:
        self._broker = broker
        self._cluster = cluster

    async def send(
        self,
        topic: str,
        body: bytes,
        *,
        order_key: str | None = None,
        message_id: str | None = None,
        **options: Unpack[MessageOptions],
    ) -> SendResult:
        return self._broker.store(topic, Outgoing(body, **options), self._cluster, order_key, message_id)

    async def send_oneway(self, topic: str, body: bytes, **options: Unpack[MessageOptions]) -> str:
        return (await self.send(topic, body, **options)).message_id

    async def send_batch(self, topic: str, messages: Iterable[Outgoing]) -> list[SendResult]:
        return [self._broker.store(topic, message, self._cluster, None) for message in messages]


def _error_of(listener: Listener, argument: Any) -> BaseException | None:
    """Calls the listener; returns what it raised."""
    try:
        if listener.is_async:
            _on_a_loop(listener.call(argument))
        else:
            call_sync(listener, argument)
    except NotAwaited:
        raise
    except (Exception, *OF_LISTENERS) as error:
        return error
    return None


def _on_a_loop(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs it to its end, in a thread of its own when the test itself is async."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()
