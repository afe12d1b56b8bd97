"""The brokers' locks on the queues that a member consumes in order (Java `RebalanceImpl.lock`, `unlock`).

A broker lets one member of a group hold the lock of a queue, for 60 s after it was last asked. A member renews its
locks every 20 s and trusts one for 30 s, counted from before the request was sent, so that it stops in time when the
broker does not answer. It trusts a lock only on the connection that it was granted on: a broker that was started again
knows no locks, and another member may be the first to ask it. A lock that was not trusted meanwhile and is granted
again counts only if the group is not further on than this member: another one may have had it in between.

Knows neither messages nor offsets. Callers: the event loop alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from remoting.client.errors import ClientError
from remoting.complaints import ComplaintLog
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.errors import WireError

logger = logging.getLogger(__name__)

# RocketMQ's `rocketmq.client.rebalance.lockInterval` and `lockMaxLiveTime`.
RENEW_INTERVAL_S = 20.0
VALID_S = 30.0
# Renewals that were asked for out of turn, because a lock is needed that cannot be trusted.
EXTRA_RENEWAL_INTERVAL_S = 0.1
# The same while a broker does not answer.
UNREACHABLE_INTERVAL_S = 1.0
# Kind of the complaint about a broker that is away.
NOT_LOCKED = "not locked"


class LockRequests(Protocol):
    """What brokers are asked. Both raise ClientError or WireError."""

    async def lock(self, broker_name: str, queues: list[MessageQueue]) -> list[MessageQueue]:
        """Returns those of the queues that this member holds now."""
        ...

    async def unlock(self, broker_name: str, queues: list[MessageQueue]) -> None: ...

    def master_connection(self, broker_name: str) -> object | None:
        """Returns the open connection to the broker's master."""
        ...


@dataclass(frozen=True, slots=True)
class _Grant:
    connection: object | None
    until_s: float


class QueueLocks:
    """`start()`, later `stop()`, once each.

    `lost` is called with queues that another member has locked, or had and went on in; `renewed` after each round of
    renewals. `is_behind` asks the broker whether the group is further on in a queue than this member.
    """

    def __init__(
        self,
        brokers: LockRequests,
        group: str,
        *,
        lost: Callable[[list[MessageQueue]], None],
        renewed: Callable[[], None],
        is_behind: Callable[[MessageQueue], Awaitable[bool]],
        renew_interval_s: float = RENEW_INTERVAL_S,
    ) -> None:
        self._brokers = brokers
        self._group = group
        self._lost = lost
        self._renewed = renewed
        self._is_behind = is_behind
        self._renew_interval_s = renew_interval_s
        # Of every queue that was locked and is neither unlocked nor lost.
        self._grants: dict[MessageQueue, _Grant] = {}
        # A broker may answer requests in another order than they were sent: no lock and unlock at the same time.
        self._turn = asyncio.Lock()
        self._wanted = asyncio.Event()
        self._complaints = ComplaintLog(logger)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=f"renew locks of {self._group}")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def holds(self, queue: MessageQueue) -> bool:
        """Returns True while no other member can consume `queue`."""
        grant = self._grants.get(queue)
        return (
            grant is not None
            and asyncio.get_running_loop().time() < grant.until_s
            and grant.connection is not None
            and grant.connection is self._brokers.master_connection(queue.broker_name)
        )

    def renew_soon(self) -> None:
        """Renews out of turn; `renewed` is called then."""
        self._wanted.set()

    def renew_if_unsure(self) -> None:
        """Renews out of turn where a lock cannot be trusted."""
        if not self._are_sure:
            self.renew_soon()

    async def make_sure(self) -> None:
        """Renews where a lock cannot be trusted, and returns when the brokers have answered, or cannot be reached."""
        if not self._are_sure:
            await self._renew()

    @property
    def _are_sure(self) -> bool:
        return all(self.holds(queue) for queue in self._grants)

    async def lock(self, queue: MessageQueue) -> bool:
        """Returns False when another member holds the lock. Raises ClientError or WireError."""
        async with self._turn:
            until_s = asyncio.get_running_loop().time() + VALID_S
            try:
                granted = await self._brokers.lock(queue.broker_name, [queue])
            except asyncio.CancelledError:  # a stop; the broker may grant it nevertheless
                if queue not in self._grants:
                    await self._unlock(queue.broker_name, [queue])
                raise
            if queue not in granted:
                self._grants.pop(queue, None)
                return False
            self._grant([queue], self._brokers.master_connection(queue.broker_name), until_s)
            return True

    async def unlock(self, queues: Iterable[MessageQueue]) -> None:
        """Gives the locks back; where a broker does not answer they expire. Raises nothing."""
        async with self._turn:
            held = [queue for queue in queues if self._grants.pop(queue, None) is not None]
            await asyncio.gather(*(self._unlock(name, its) for name, its in _by_broker(held).items()))

    async def _unlock(self, broker_name: str, queues: list[MessageQueue]) -> None:
        try:
            await self._brokers.unlock(broker_name, queues)
        except (ClientError, WireError) as error:
            logger.warning(
                "group %s: %d locks on %s stay until they expire: %s", self._group, len(queues), broker_name, error
            )

    async def _run(self) -> None:
        while True:
            try:
                async with asyncio.timeout(self._renew_interval_s):
                    await self._wanted.wait()
            except TimeoutError:
                pass
            self._wanted.clear()
            try:
                is_answered = await self._renew()
                self._renewed()
            except Exception:
                logger.exception("group %s: locks were not renewed; trying again", self._group)
                is_answered = False
            await asyncio.sleep(EXTRA_RENEWAL_INTERVAL_S if is_answered else UNREACHABLE_INTERVAL_S)

    async def _renew(self) -> bool:
        """Returns False when a broker did not answer."""
        async with self._turn:
            brokers = _by_broker(self._grants)
            answered = await asyncio.gather(*(self._renew_at(name, queues) for name, queues in brokers.items()))
        return all(answered)

    async def _renew_at(self, broker_name: str, queues: list[MessageQueue]) -> bool:
        until_s = asyncio.get_running_loop().time() + VALID_S
        trusted = {queue for queue in queues if self.holds(queue)}
        try:
            locked = set(await self._brokers.lock(broker_name, queues))
            connection = self._brokers.master_connection(broker_name)
            behind = {queue for queue in locked - trusted if await self._is_behind(queue)}
        except (ClientError, WireError) as error:
            text = "locks on broker %s cannot be renewed: %s"
            self._complaints.warn(broker_name, NOT_LOCKED, text, broker_name, error)
            return False
        self._complaints.resolved(broker_name, NOT_LOCKED)
        self._grant([queue for queue in queues if queue in locked - behind], connection, until_s)
        lost = [queue for queue in queues if queue not in locked or queue in behind]
        if lost:
            for queue in lost:
                del self._grants[queue]
            logger.warning("group %s: another member has got %s", self._group, ", ".join(map(str, lost)))
            self._lost(lost)
        return True

    def _grant(self, queues: list[MessageQueue], connection: object | None, until_s: float) -> None:
        for queue in queues:
            self._grants[queue] = _Grant(connection, until_s)


def _by_broker(queues: Iterable[MessageQueue]) -> dict[str, list[MessageQueue]]:
    grouped: dict[str, list[MessageQueue]] = defaultdict(list)
    for queue in queues:
        grouped[queue.broker_name].append(queue)
    return grouped
