"""Following one cluster of our own brokers: a watch for each master, and what all of them say in one set of rows.

`ClusterFollower` has the requests, `FollowedRows` (`followed_rows.py`) what is written; its steps run in turn, so two
brokers that name the same topic or group never write at once. The name servers are asked when following begins, when a
broker did not answer (its address may be another one now), and while one of them is silent; each of our brokers is
known to its own name server alone.

A broker that does not answer is asked again with a growing pause and makes only its own rows old; the others are
followed meanwhile. Where a master is Apache's, the whole cluster is polled, because a cycle of polling counts as the
word of all brokers together.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import Counter
from datetime import datetime

from django.db import Error as DatabaseError

from mqadmin.clusters.models import Broker, Cluster, ClusterKind
from mqadmin.observing.database_threads import DatabaseSteps, DatabaseThreads
from mqadmin.observing.followed_rows import FollowedRows
from mqadmin.observing.gateway import Costs, Gateway, GatewayError, NotWatchable
from mqadmin.observing.pace import PACE, Pace

logger = logging.getLogger(__name__)


class ClusterFollower:
    """One cluster behind its name servers. `true_until`: up to when an earlier follower kept its rows true."""

    def __init__(
        self,
        cluster_id: int,
        namesrv: str,
        threads: DatabaseThreads,
        pace: Pace = PACE,
        true_until: datetime | None = None,
    ) -> None:
        self._cluster_id = cluster_id
        self._namesrv = namesrv
        self._pace = pace
        self._database = DatabaseSteps(threads)
        self._costs = Costs()
        self._next_costs_s = time.monotonic() + self._pace.costs_s
        self._rows = FollowedRows(cluster_id, namesrv, true_until, self._database.raise_if_closing)
        # By the broker's name.
        self._watches: dict[str, asyncio.Task[None]] = {}
        self._watched: dict[str, Broker] = {}
        # In a row, by the broker's name; "" counts those that concern no broker in particular.
        self._failures: Counter[str] = Counter()
        self._next_list_s = 0.0
        # Before that no broker is asked for more progress: what was written is paid for by then.
        self._rested_s = 0.0

    async def run(self) -> None:
        """Runs until it is cancelled, or the cluster is left to polling, or gone."""
        try:
            while True:
                try:
                    await self._follow()
                except NotWatchable as reason:
                    await self._leave_to_polling(reason)
                    return
                except Cluster.DoesNotExist:
                    logger.info("cluster %d is not behind %s any more", self._cluster_id, self._namesrv)
                    return
                except (GatewayError, DatabaseError) as error:
                    await self._give_reason(str(error))
                except Exception as error:  # shown at this cluster; the others go on
                    logger.exception("cluster %d cannot be followed; trying again", self._cluster_id)
                    await self._give_reason(repr(error))
                self._failures[""] += 1
                await asyncio.sleep(self._pace.pause_s(self._failures[""]))
        finally:
            await self._end_watches(list(self._watches))
            await self._database.close()

    async def _follow(self) -> None:
        """Keeps a watch on every master and ticks. Raises what concerns all of them."""
        self._next_list_s = next_tick_s = time.monotonic()
        try:
            while True:
                if time.monotonic() >= self._next_list_s:
                    await self._keep_watches()
                pause_s = max(0.0, min(self._next_list_s, next_tick_s) - time.monotonic())
                if self._watches:
                    await asyncio.wait(self._watches.values(), timeout=pause_s, return_when=asyncio.FIRST_COMPLETED)
                else:
                    await asyncio.sleep(pause_s)
                for name in [name for name, watch in self._watches.items() if watch.done()]:
                    await self._note_ended(name)
                if time.monotonic() >= next_tick_s:
                    row_count = await self._database.run(self._rows.tick)
                    next_tick_s = time.monotonic() + max(self._pace.tick_s, row_count / self._pace.rows_per_s_max)
                    await self._write_costs()
        finally:
            await self._end_watches(list(self._watches))

    async def _keep_watches(self) -> None:
        """Begins to watch the masters that are not watched, and stops at those that are not listed any more."""
        try:
            async with Gateway(self._namesrv, self._costs) as gateway:
                known = await gateway.known_brokers()
        except GatewayError:
            if not self._watches:
                raise
            self._next_list_s = time.monotonic() + self._pace.backoff_s[-1]
            return
        masters = await self._database.run(self._rows.begin, known)
        addresses = {broker.name: broker.address for broker in masters}
        await self._end_watches([name for name in self._watches if addresses.get(name) != self._watched[name].address])
        for broker in masters:
            if broker.name not in self._watches:
                self._watched[broker.name] = broker
                watch = asyncio.create_task(self._watch(broker), name=f"watch {broker.name} at {broker.address}")
                self._watches[broker.name] = watch
        self._next_list_s = time.monotonic() + self._pace.backoff_s[-1] if known.silent else math.inf

    async def _watch(self, broker: Broker) -> None:
        """Watches until the broker does not answer any more: then raises GatewayError."""
        async with Gateway(self._namesrv, self._costs) as gateway:
            wait_ms = self._pace.watch_wait_ms
            while True:
                header, body = await gateway.watch(
                    broker.address, boot=broker.boot, since=broker.revision, wait_ms=wait_ms
                )
                row_count = await self._database.run(self._rows.write, broker, header, body)
                self._failures[broker.name] = self._failures[""] = 0
                now_s = time.monotonic()
                self._rested_s = max(now_s, self._rested_s) + row_count / self._pace.rows_per_s_max
                rest_s, wait_ms = max(self._pace.cycle_s_min, self._rested_s - now_s), self._pace.watch_wait_ms
                if rest_s > self._pace.tick_s:
                    # What is true now is true no longer while it rests, and is again with the next answer.
                    await self._database.run(self._rows.rest, broker.name)
                    wait_ms = min(wait_ms, self._pace.rested_wait_ms)
                await asyncio.sleep(rest_s)

    async def _note_ended(self, name: str) -> None:
        """Writes why the watch of a broker ended, and asks the name servers again. Raises what is not the broker's."""
        error = self._watches.pop(name).exception()
        if isinstance(error, NotWatchable) or not isinstance(error, GatewayError):
            raise error or AssertionError(f"the watch of {name} ended by itself")
        self._failures[name] += 1
        await self._database.run(self._rows.note_away, name, str(error))
        self._next_list_s = min(self._next_list_s, time.monotonic() + self._pace.pause_s(self._failures[name]))

    async def _write_costs(self) -> None:
        if time.monotonic() >= self._next_costs_s:
            self._next_costs_s = time.monotonic() + self._pace.costs_s
            await self._database.run(self._rows.note_costs, self._costs.take())

    async def _end_watches(self, names: list[str]) -> None:
        ended = [self._watches.pop(name) for name in names]
        for watch in ended:
            watch.cancel()
        await asyncio.gather(*ended, return_exceptions=True)

    async def _leave_to_polling(self, reason: NotWatchable) -> None:
        async with Gateway(self._namesrv, self._costs) as gateway:
            ours = await gateway.ours_among([broker.address for broker in self._watched.values()])
        kind = ClusterKind.MIXED if ours else ClusterKind.APACHE
        logger.info("the cluster behind %s is polled: %s", self._namesrv, reason)
        await self._database.run(self._rows.leave_to_polling, kind)

    async def _give_reason(self, reason: str) -> None:
        try:
            await self._database.run(self._rows.note_unreachable, reason)
            await self._write_costs()
        except (DatabaseError, Cluster.DoesNotExist) as error:
            logger.warning("cluster %d: %s; and that cannot be written: %s", self._cluster_id, reason, error)
