"""Polls messages of the queues that a group or its caller gives it (Java `DefaultLitePullConsumer`).

    async with LitePullConsumer("127.0.0.1:9876", "reports") as consumer:
        consumer.subscribe("orders", "paid || refunded")
        while True:
            for message in await consumer.poll():
                ...

With `subscribe` the group's members share the queues; with `assign` the caller says which to read; the two exclude each
other. A task per queue pulls ahead. What a poll returns counts as consumed when the next one is called: the offsets are
committed then, every 5 s, and when the consumer closes; without `auto_commit` only by `commit()`. A caller that polls
again after a failure has therefore given those messages up; `seek` brings them back.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Self

from remoting.client.commit_rounds import commit_rounds
from remoting.client.config import ClientConfig
from remoting.client.errors import ClientError
from remoting.client.instance import ClientInstance
from remoting.client.lite_membership import LiteMembership
from remoting.client.lite_queue import CacheLimits, LiteQueue
from remoting.client.queue_requests import PullResult, QueueRequests
from remoting.client.received_message import ReceivedMessage
from remoting.closing import close_in_turn
from remoting.complaints import ComplaintLog
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.errors import WireError
from remoting.wire.expressions import Expression, parse_expression, tags_or_sql
from remoting.wire.limits import PULL_MESSAGES_MAX
from remoting.wire.names import check_group, check_topic, with_namespace, without_namespace

logger = logging.getLogger(__name__)

POLL_TIMEOUT_S = 5.0
AUTO_COMMIT_INTERVAL_S_MIN = 1.0
# What a queue that may not be pulled waits before it looks again: paused, or its cache full.
PAUSED_CHECK_S = 1.0
FAILED_PULL_PAUSE_S = 1.0
FAILED_START_PAUSE_S = 3.0
# A broker that answers at once and with the same offset is asked again after this pause, so that no loop spins.
SPIN_PAUSE_S = 0.1
SPIN_ANSWER_S = 0.05

_CONSUME_FROM = {"last": "CONSUME_FROM_LAST_OFFSET", "first": "CONSUME_FROM_FIRST_OFFSET"}
QueuesCallback = Callable[[str, frozenset[MessageQueue]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LitePullConfig:
    """RocketMQ's values where it has such a setting.

    `consume_from`: "last", "first", or a moment with its time zone: where a queue without a committed offset begins.
    `pull_count`: messages of one pull, and so of one poll. `wait_ms`: how long a broker holds a pull. `strategy`: of
    `remoting.allocation`. `namespace`: brokers know group and topics by names that begin with it, callers don't.
    """

    auto_commit: bool = True
    auto_commit_interval_s: float = 5.0
    consume_from: str | datetime = "last"
    pull_count: int = PULL_MESSAGES_MAX
    wait_ms: int = 20_000
    strategy: str = "AVG"
    namespace: str = ""
    cache: CacheLimits = field(default_factory=CacheLimits)

    def __post_init__(self) -> None:
        """Raises ValueError."""
        if self.auto_commit_interval_s < AUTO_COMMIT_INTERVAL_S_MIN:
            raise ValueError(
                f"auto_commit_interval_s is {self.auto_commit_interval_s}; {AUTO_COMMIT_INTERVAL_S_MIN:g} s at least"
            )
        if not 1 <= self.pull_count <= PULL_MESSAGES_MAX:
            raise ValueError(f"pull_count is {self.pull_count}; 1 to {PULL_MESSAGES_MAX} are allowed")
        if isinstance(self.consume_from, datetime):
            if self.consume_from.tzinfo is None:
                raise ValueError(f"consume_from {self.consume_from} has no time zone: give an aware datetime")
        elif self.consume_from not in _CONSUME_FROM:
            raise ValueError(f'consume_from={self.consume_from!r} is neither "last", "first" nor a datetime')


class LitePullConsumer:
    """One member of a group on one event loop. `await start()` first, `await close()` at the end."""

    def __init__(
        self,
        namesrv: str | Sequence[str],
        group: str,
        config: LitePullConfig | None = None,
        *,
        client: ClientConfig | None = None,
    ) -> None:
        """Raises MessageError for an illegal group name, ValueError without a name server."""
        self.config = config or LitePullConfig()
        self.group = with_namespace(self.config.namespace, group)
        check_group(self.group)
        self._instance = ClientInstance(namesrv, config=client)
        self._requests = QueueRequests(self._instance, self.group, self.config.namespace)
        moment = isinstance(self.config.consume_from, datetime)
        consume_from = "CONSUME_FROM_TIMESTAMP" if moment else _CONSUME_FROM[str(self.config.consume_from)]
        self._membership = LiteMembership(
            self._instance, self.group, consume_from, self.config.strategy, self._assign_topic
        )
        self._is_assigned_by_caller = False
        self._queues: dict[MessageQueue, LiteQueue] = {}
        self._pulling: dict[MessageQueue, asyncio.Task[None]] = {}
        self._expressions: dict[str, Expression] = {}
        self._arrived = asyncio.Event()
        self._room = asyncio.Event()
        self._turns = itertools.count()
        self._committed_s = 0.0
        # An earlier commit must not reach its broker behind a later one, nor beside the first of a topic.
        self._committing = asyncio.Lock()
        self._complaints = ComplaintLog(logger)
        self._is_running = False

    async def start(self) -> None:
        """Starts connections; what was subscribed or assigned before is pulled from now on."""
        if self._is_running:
            raise ClientError(f"lite pull consumer {self.group!r} runs already")
        self._is_running = True
        self._committed_s = asyncio.get_running_loop().time()
        self._instance.start()
        self._membership.start()
        for queue in self._queues:
            self._start_pulling(queue)

    async def close(self) -> None:
        """Commits what was polled (with `auto_commit`), leaves the group and closes its connections."""
        if not self._is_running:
            return
        await close_in_turn(
            self._membership.stop,
            lambda: self._stop_pulling(list(self._queues)),
            self._end_polls,
            self._membership.leave,
            self._instance.close,
        )

    async def _end_polls(self) -> None:
        """Commits what was polled; a poll that still waits raises ClientError."""
        try:
            if self.config.auto_commit:
                await self._commit_quietly(self._queues.values())
        finally:
            self._is_running = False
            self._arrived.set()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # what is read

    def subscribe(self, topic: str, tags: str = "*", *, sql: str | None = None) -> None:
        """Shares the topic's queues with the other members of the group. `sql`, over properties, replaces `tags`.

        Raises MessageError for a name or expression that RocketMQ would not take, ClientError after `assign`.
        """
        known_as = with_namespace(self.config.namespace, topic)
        check_topic(known_as)
        expression = tags_or_sql(tags, sql)
        if self._is_assigned_by_caller:
            raise ClientError("Subscribe and assign are mutually exclusive.")
        self._expressions[topic] = expression
        self._membership.subscribe(known_as, expression)

    async def unsubscribe(self, topic: str) -> None:
        """Gives the topic's queues to the other members."""
        self._expressions.pop(topic, None)
        await self._membership.unsubscribe(with_namespace(self.config.namespace, topic))

    async def assign(
        self,
        queues: Collection[MessageQueue],
        tags: Mapping[str, str] | None = None,
        *,
        sql: Mapping[str, str] | None = None,
    ) -> None:
        """Reads exactly these queues, whatever other members do. `tags`, `sql`: an expression by topic, all without.

        Queues that stay go on where they are. Raises ClientError after `subscribe`.
        """
        if self._membership.expressions:
            raise ClientError("Subscribe and assign are mutually exclusive.")
        tags, sql = tags or {}, sql or {}
        topics = {queue.topic for queue in queues}
        expressions = {topic: tags_or_sql(tags.get(topic, "*"), sql.get(topic)) for topic in topics}
        self._is_assigned_by_caller = True
        self._expressions = expressions
        await self._set_queues(frozenset(queues), lambda _: True)

    @property
    def assignment(self) -> frozenset[MessageQueue]:
        """Returns the queues that are read now."""
        return frozenset(self._queues)

    async def queues(self, topic: str) -> tuple[MessageQueue, ...]:
        """Returns the readable queues of a topic, for `assign`. Raises RouteNotFound."""
        self._check_running()
        return await self._requests.queues(topic)

    def on_queues_changed(self, topic: str, changed: QueuesCallback) -> None:
        """Calls `changed(topic, queues)` on the event loop when the topic's readable queues are others than before.

        For callers that `assign`; routes are looked at every 30 s (`topicMetadataCheckIntervalMillis`).
        """
        known: dict[str, frozenset[MessageQueue]] = {}

        known_as = with_namespace(self.config.namespace, topic)

        def route_changed(of: str) -> None:
            route = self._instance.routes.known(known_as)
            if of != known_as or route is None:
                return
            queues = frozenset(map(self._requests.declared, route.subscribe_queues))
            before = known.get(topic)
            known[topic] = queues
            if before is not None and before != queues:
                changed(topic, queues)

        self._instance.routes.changed.append(route_changed)
        if self._instance.routes.known(known_as) is not None:
            route_changed(known_as)
        elif self._is_running:
            self._instance.routes.use(known_as)

    # messages

    async def poll(self, timeout_s: float = POLL_TIMEOUT_S) -> list[ReceivedMessage]:
        """Returns the messages of one pull, in their queue's order; none when nothing came within `timeout_s`.

        Queues take turns. Raises ClientError before `start()`, after `close()`, and without `subscribe` or `assign`.
        """
        self._check_running()
        if not self._is_assigned_by_caller and not self._membership.expressions:
            raise ClientError(
                f"lite pull consumer {self.group!r} reads nothing: subscribe to a topic, or assign queues"
            )
        loop = asyncio.get_running_loop()
        await self._auto_commit(loop.time())
        deadline_s = loop.time() + timeout_s
        while not (batch := self._take()):
            self._arrived.clear()
            try:
                async with asyncio.timeout_at(deadline_s):
                    await self._arrived.wait()
            except TimeoutError:
                return []
            self._check_running()
        return batch

    def _take(self) -> list[ReceivedMessage]:
        ready = [state for state in self._queues.values() if state.is_ready]
        if not ready:
            return []
        batch = ready[next(self._turns) % len(ready)].take()
        self._room.set()
        return batch

    # offsets

    async def commit(self, offsets: Mapping[MessageQueue, int] | None = None) -> None:
        """Commits these offsets (the next to consume), or behind all that was polled; returns when brokers have them.

        Raises ClientError for a queue that isn't read here, and when a broker doesn't take one; the others are tried.
        """
        self._check_running()
        if offsets is None:
            await self._commit(self._queues.values())
            return
        strangers = sorted(queue for queue in offsets if queue not in self._queues)
        if strangers:
            raise ClientError(f"{strangers[0]} is not read by this consumer: commit only what is assigned to it")
        async with self._committing:
            await _commit_each(offsets, lambda queue: self._requests.commit(queue, offsets[queue]))

    async def committed(self, queue: MessageQueue) -> int | None:
        """Returns the group's committed offset, as the broker has it; None when there is none."""
        self._check_running()
        return await self._requests.committed(queue)

    async def seek(self, queue: MessageQueue, offset: int) -> None:
        """Goes on at `offset`: what was cached is forgotten. Raises ClientError for a queue that isn't read here, and
        for an offset that its broker doesn't have.
        """
        self._read_here(queue)
        low, high = await asyncio.gather(self._requests.min_offset(queue), self._requests.max_offset(queue))
        if not low <= offset <= high:
            raise ClientError(f"{queue}: offset {offset} is not there; the broker has {low} to {high}")
        await self._begin(queue, offset)

    async def seek_to_begin(self, queue: MessageQueue) -> None:
        """Goes on at the first message that can be read."""
        self._read_here(queue)
        await self._begin(queue, await self._requests.min_offset(queue))

    async def seek_to_end(self, queue: MessageQueue) -> None:
        """Goes on behind the last message."""
        self._read_here(queue)
        await self._begin(queue, await self._requests.max_offset(queue))

    async def offset_at(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """Returns the offset of the first message stored at `timestamp_ms` (since the epoch) or later, for `seek`."""
        self._check_running()
        return await self._requests.offset_at(queue, timestamp_ms)

    def pause(self, queues: Collection[MessageQueue]) -> None:
        """Neither pulls these queues nor gives out what was pulled of them, until `resume`."""
        for queue in queues:
            self._read_here(queue).is_paused = True

    def resume(self, queues: Collection[MessageQueue]) -> None:
        for queue in queues:
            self._read_here(queue).is_paused = False
        self._room.set()
        self._arrived.set()

    # queues come and go

    async def _assign_topic(self, known_as: str, mine: frozenset[MessageQueue]) -> None:
        topic = without_namespace(self.config.namespace, known_as)
        await self._set_queues(frozenset(map(self._requests.declared, mine)), lambda queue: queue.topic == topic)

    async def _set_queues(self, wanted: frozenset[MessageQueue], concerns: Callable[[MessageQueue], bool]) -> None:
        """Makes `wanted` the queues of those that the change `concerns`."""
        lost = [queue for queue in self._queues if concerns(queue) and queue not in wanted]
        await self._stop_pulling(lost)
        states = [self._queues.pop(queue) for queue in lost]
        if self.config.auto_commit and self._is_running:
            await self._commit_quietly(states)
        for queue in sorted(wanted - self._queues.keys()):
            self._queues[queue] = LiteQueue(queue)
            if self._is_running:
                self._start_pulling(queue)

    def _start_pulling(self, queue: MessageQueue) -> None:
        self._pulling[queue] = asyncio.create_task(self._pull_regularly(self._queues[queue]), name=f"lite pull {queue}")

    async def _stop_pulling(self, queues: Collection[MessageQueue]) -> None:
        tasks = [task for queue in queues if (task := self._pulling.pop(queue, None)) is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _begin(self, queue: MessageQueue, offset: int) -> None:
        state = self._read_here(queue)
        await self._stop_pulling([queue])
        state.begin(offset)
        self._start_pulling(queue)

    # one queue

    async def _pull_regularly(self, state: LiteQueue) -> None:
        """Catches every error and goes on: a queue without its loop would not be read any more."""
        loop, name = asyncio.get_running_loop(), str(state.queue)
        while True:
            try:
                if state.pull_offset is None:
                    await self._find_start(state)
                    continue
                if state.is_paused or not self._has_room(state):
                    await self._wait_for_room()
                    continue
                offset, began_s = state.pull_offset, loop.time()
                state.put(await self._pull(state.queue, offset))
                self._complaints.resolved(name, "pull")
                if state.is_ready:
                    self._arrived.set()
                elif state.pull_offset == offset and loop.time() - began_s < SPIN_ANSWER_S:
                    await asyncio.sleep(SPIN_PAUSE_S)
            except (ClientError, WireError) as error:
                self._complaints.warn(name, "pull", "group %s cannot read %s: %s", self.group, name, error)
                await asyncio.sleep(FAILED_START_PAUSE_S if state.pull_offset is None else FAILED_PULL_PAUSE_S)
            except Exception:
                logger.exception("group %s: reading %s failed; trying again", self.group, name)
                await asyncio.sleep(FAILED_PULL_PAUSE_S)

    async def _pull(self, queue: MessageQueue, offset: int) -> PullResult:
        expression = self._expressions.get(queue.topic) or parse_expression(None)
        config = self.config
        return await self._requests.pull(
            queue, offset, expression, count=config.pull_count, wait_ms=config.wait_ms, is_lite=True
        )

    async def _find_start(self, state: LiteQueue) -> None:
        """Begins at the committed offset, else where the configuration says."""
        committed = await self._requests.committed(state.queue)
        state.committed_offset = committed
        match self.config.consume_from:
            case _ if committed is not None:
                offset = committed
            case datetime() as moment:
                offset = await self._requests.offset_at(state.queue, int(moment.timestamp() * 1000))
            case "last":
                offset = await self._requests.max_offset(state.queue)
            case _:
                offset = 0  # if it was deleted, the answer to the first pull corrects it
        state.begin(offset)

    def _has_room(self, state: LiteQueue) -> bool:
        count = sum(each.message_count for each in self._queues.values())
        return count < self.config.cache.messages_max and state.has_room(self.config.cache)

    async def _wait_for_room(self) -> None:
        self._room.clear()
        try:
            async with asyncio.timeout(PAUSED_CHECK_S):
                await self._room.wait()
        except TimeoutError:
            pass

    # commits

    async def _auto_commit(self, now_s: float) -> None:
        if self.config.auto_commit and now_s - self._committed_s >= self.config.auto_commit_interval_s:
            self._committed_s = now_s
            await self._commit_quietly(self._queues.values())

    async def _commit_quietly(self, states: Collection[LiteQueue]) -> None:
        try:
            await self._commit(states)
        except (ClientError, WireError) as error:
            self._complaints.warn(self.group, "commit", "group %s cannot commit: %s", self.group, error)

    async def _commit(self, states: Collection[LiteQueue]) -> None:
        """Commits the offsets that changed. Raises the first error when all were tried."""
        async with self._committing:
            changed = {one.queue: one for one in states if one.consume_offset not in (None, one.committed_offset)}
            await _commit_each(changed, lambda queue: self._commit_one(changed[queue]))

    async def _commit_one(self, state: LiteQueue) -> None:
        offset = state.consume_offset
        if offset is not None:
            await self._requests.commit(state.queue, offset)
            state.committed_offset = offset

    def _read_here(self, queue: MessageQueue) -> LiteQueue:
        self._check_running()
        state = self._queues.get(queue)
        if state is None:
            raise ClientError(f"{queue} is not read by this consumer: subscribe to its topic, or assign it")
        return state

    def _check_running(self) -> None:
        if not self._is_running:
            raise ClientError(
                f"lite pull consumer {self.group!r} is not running: call start() first, and nothing after close()"
            )


async def _commit_each(queues: Iterable[MessageQueue], commit: Callable[[MessageQueue], Awaitable[None]]) -> None:
    """Commits each queue; raises the first error when all were tried."""
    results: list[BaseException | None] = []
    for together in commit_rounds(queues):
        results += await asyncio.gather(*map(commit, together), return_exceptions=True)
    for result in results:
        if result is not None:
            raise result
