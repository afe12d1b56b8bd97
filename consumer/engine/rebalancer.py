"""Rebalances when it is due (Java `RebalanceService`, `RebalanceImpl`).

Each rebalance asks, per topic, for its queues and the group's members, lets `allocation` and `rebalance` decide, and
carries the decision out. A topic's failure leaves its queues as they are and does not stop the others. `wake()` only
sets a flag, so that it can be called from anywhere on the event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence

from consumer.engine.brokers import Brokers
from consumer.engine.clock import Clock
from consumer.engine.owned_queues import OwnedQueues
from consumer.engine.rebalance import RebalanceTimer, decide
from consumer.engine.subscriptions import Subscriptions
from remoting.allocation import AllocationError, Strategy, allocate
from remoting.client.errors import ClientError, RouteNotFound
from remoting.client.instance import ClientInstance
from remoting.client.name_servers import NameServersUnreachable
from remoting.complaints import ComplaintLog
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.errors import WireError
from remoting.wire.names import AUTO_CREATE_TOPIC, is_retry_topic

logger = logging.getLogger(__name__)

# Takes a topic, its queues, and those of them that this member owns now (Java `MessageQueueListener`). Called on the
# event loop: it must not block.
QueuesChanged = Callable[[str, Sequence[MessageQueue], Sequence[MessageQueue]], None]

# Subject and kind of complaints about what a rebalance waits for.
NAME_SERVERS = "name servers"
WAITING = "waiting"
# How soon a queue that another member has locked is asked for again, as in Java.
LOCK_RETRY_S = 0.5


class Rebalancer:
    """`start()` begins the first rebalance at once; `stop()` returns when none runs any more."""

    def __init__(
        self,
        *,
        client: ClientInstance,
        brokers: Brokers,
        subscriptions: Subscriptions,
        strategy: str | Strategy,
        owned: OwnedQueues,
        clock: Clock,
        queues_changed: QueuesChanged | None = None,
    ) -> None:
        self._client = client
        self._brokers = brokers
        self._subscriptions = subscriptions
        self._strategy = strategy
        self._owned = owned
        self._clock = clock
        self._queues_changed = queues_changed
        self._complaints = ComplaintLog(logger)
        self._woken = asyncio.Event()
        self._timer = RebalanceTimer()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        for topic in self._subscriptions.topics:
            self._client.routes.use(topic)
        self._client.routes.changed.append(self._route_changed)
        self._task = asyncio.create_task(self._run(), name=f"rebalance {self._subscriptions.group}")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def wake(self) -> None:
        """Rebalances soon: the members of the group, or the queues of a topic, have changed."""
        self._woken.set()

    def _route_changed(self, topic: str) -> None:
        if topic in self._subscriptions.expressions:
            self.wake()

    async def _run(self) -> None:
        while True:
            await self._wait_until_due()
            self._woken.clear()
            try:
                is_balanced = await self._rebalance()
            except Exception:
                logger.exception("group %s: a rebalance failed", self._subscriptions.group)
                is_balanced = False
            self._timer.rebalanced(_monotonic_ms(), is_balanced=is_balanced)

    async def _wait_until_due(self) -> None:
        while (wait_ms := self._timer.wait_ms(_monotonic_ms(), is_woken=self._woken.is_set())) > 0:
            if self._woken.is_set():
                await asyncio.sleep(wait_ms / 1000)
                return
            try:
                async with asyncio.timeout(wait_ms / 1000):
                    await self._woken.wait()
            except TimeoutError:
                return

    async def _rebalance(self) -> bool:
        """Returns True when every topic is balanced; ends at the first topic when no name server answers."""
        is_balanced = await self._find_brokers()
        for topic in self._subscriptions.topics if is_balanced else ():
            try:
                is_balanced &= await self._rebalance_topic(topic)
            except NameServersUnreachable as error:
                self._complaints.warn(NAME_SERVERS, WAITING, "group %s waits: %s", self._subscriptions.group, error)
                return False
            except RouteNotFound as error:
                is_balanced = False
                if not is_retry_topic(topic):  # the broker creates it after the first heartbeat
                    self._complaints.warn(
                        topic, WAITING, "group %s waits for topic %r: %s", self._subscriptions.group, topic, error
                    )
            except (ClientError, WireError, AllocationError) as error:
                is_balanced = False
                self._complaints.warn(
                    topic, WAITING, "group %s cannot balance topic %r: %s", self._subscriptions.group, topic, error
                )
            except Exception:
                is_balanced = False
                logger.exception("group %s: a rebalance of topic %r failed", self._subscriptions.group, topic)
            else:
                self._complaints.resolved(topic, WAITING)
        return is_balanced

    async def _find_brokers(self) -> bool:
        """Sends the first heartbeat, also for topics that do not exist yet, to every broker that would create them.

        Returns False when no name server answers.
        """
        if self._client.routes.broker_addresses(with_slaves=False):
            return True
        for topic in (*self._subscriptions.topics, AUTO_CREATE_TOPIC):
            try:
                await self._client.routes.get(topic)
            except RouteNotFound:
                continue
            except (ClientError, WireError) as error:
                self._complaints.warn(NAME_SERVERS, WAITING, "group %s waits: %s", self._subscriptions.group, error)
                return False
        self._complaints.resolved(NAME_SERVERS, WAITING)
        await self._client.heartbeats.send_now()
        return True

    async def _rebalance_topic(self, topic: str) -> bool:
        queues = await self._client.routes.subscribe_queues(topic)
        if self._subscriptions.is_broadcasting:
            return await self._change(topic, queues, queues)
        members = await self._members(topic)
        me = self._client.client_id
        if me not in members:
            text = "group %s: the broker does not list this member for topic %r yet"
            self._complaints.warn(topic, "not listed", text, self._subscriptions.group, topic)
            return False
        allocated = allocate(self._strategy, queues, members, me)
        return await self._change(topic, queues, allocated)

    async def _change(self, topic: str, queues: Sequence[MessageQueue], allocated: Iterable[MessageQueue]) -> bool:
        """Returns True when this member has the topic's queues that are allocated to it."""
        changes = decide(allocated, self._owned.of_topic(topic), self._clock())
        if changes.is_empty:
            return True
        for queue in changes.stuck:
            logger.error("group %s: %s was not pulled for too long; taken again", self._subscriptions.group, queue)
        await self._owned.release([*changes.remove, *changes.stuck])
        before = set(self._owned.of_topic(topic))
        is_complete = await self._take(changes.add)
        if changes.remove or set(self._owned.of_topic(topic)) != before:
            self._tell(topic, queues)
        return is_complete

    def _tell(self, topic: str, queues: Sequence[MessageQueue]) -> None:
        if self._queues_changed is None:
            return
        try:
            self._queues_changed(topic, tuple(queues), tuple(sorted(self._owned.of_topic(topic))))
        except BaseException:  # SystemExit in a team's function ends no member
            logger.exception("group %s: what was to hear of changed queues failed", self._subscriptions.group)

    async def _members(self, topic: str) -> list[str]:
        """Returns the members that a broker lists; asks again after a heartbeat when it does not list this one.

        Without the second question every restart of a broker would release all queues.
        """
        members = await self._brokers.member_ids(topic)
        if self._client.client_id not in members:
            await self._client.heartbeats.send_now()
            members = await self._brokers.member_ids(topic)
        return members

    async def _take(self, queues: tuple[MessageQueue, ...]) -> bool:
        results = await asyncio.gather(*(self._owned.take(queue) for queue in queues), return_exceptions=True)
        failures = [result for result in results if isinstance(result, BaseException)]
        for failure in failures:
            if not isinstance(failure, ClientError | WireError):
                raise failure
            text = "group %s cannot determine where to start: %s"
            self._complaints.warn(self._subscriptions.group, "no offset", text, self._subscriptions.group, failure)
        if False in results:  # another member consumes the queue in order, and is about to hand it over
            asyncio.get_running_loop().call_later(LOCK_RETRY_S, self.wake)
        return all(result is True for result in results)


def _monotonic_ms() -> int:
    return round(asyncio.get_running_loop().time() * 1000)
