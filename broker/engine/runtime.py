"""The broker as a whole: how it starts, how it stops. What it is made of is in `parts.py`.

Start: the store recovers, the facts are read, ports are bound, loops begin. Stop, in this order and for these reasons:
1. the name server closes, who waits for the disk is answered, and the broker's sockets close: nothing new comes in;
2. held pulls and watchers are forgotten, because their connections are gone;
3. the loops end, so that nobody writes any more;
4. delay progress and committed offsets are saved, while the store is there to say what is flushed;
5. the store flushes and closes, and lets go of its folder.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging

from broker.engine.config import BrokerConfig
from broker.engine.parts import Parts
from broker.engine.request_codes import broker_processors, name_server_processors
from broker.engine.schedule.level_history import LevelHistory
from broker.engine.schedule.levels import parse_levels
from broker.engine.serving.requests import RequestTable
from broker.engine.settings import Settings
from broker.engine.store.message_store import MessageStore
from broker.engine.store.values import RecoveryReport, StoreConfig
from remoting.server import Server

logger = logging.getLogger(__name__)

# Senders give up after 3 s; a disk that takes longer is closed all the same, which flushes once more.
FLUSH_AT_STOP_S = 3.0
# Connections, of the files that the process may have open. Every client has one to each; those to the name server may
# wait. The rest is the store's, which maps a quarter at most.
BROKER_SHARE = 0.52
NAME_SERVER_SHARE = 0.2


class BrokerRuntime:
    """`start` raises StoreError, ConfigFileUnreadable, DelayLevelError, ListenError, OSError; `stop` cleans up then."""

    def __init__(self, config: BrokerConfig) -> None:
        self.config = config
        self._names = RequestTable("name server")
        self._requests = RequestTable("broker")
        self._name_server = Server(self._names, connections_share=NAME_SERVER_SHARE)
        self._server = Server(self._requests, connections_share=BROKER_SHARE)
        self._store: MessageStore | None = None
        self._parts: Parts | None = None

    async def start(self) -> None:
        """When it returns, both ports answer; `config` then holds the real ones."""
        # Bound first, because the port stands in every message id; served last, when there is something to answer.
        namesrv_port = await self._name_server.bind(self.config.host, self.config.namesrv_port)
        port = await self._server.bind(self.config.host, self.config.port)
        self.config = dataclasses.replace(self.config, port=port, namesrv_port=namesrv_port)
        Settings(self.config).load()
        self._store = self._open_store()
        self._parts = Parts(self.config, self._store, self._requests)
        self._parts.open()
        self._names.fill(name_server_processors(self._parts))
        self._requests.fill(broker_processors(self._parts))
        await self._server.serve()
        await self._name_server.serve()

    async def stop(self) -> None:
        """In the order of the module's note; whatever was started. Raises OSError; the store is closed all the same."""
        await self._name_server.close()
        if self._store is not None:
            await _flushed(self._store)
        await self._server.close()
        try:
            if self._parts is not None:
                await self._parts.close()
        finally:
            if self._store is not None:
                self._store.close()

    def _open_store(self) -> MessageStore:
        levels = LevelHistory(self.config.store / "config", parse_levels(self.config.delay_levels))
        store_config = StoreConfig(flush=self.config.flush, delay_levels_at=levels.delays_ms_at)
        store = MessageStore.open(self.config.store, store_config)
        report = store.recovery
        logger.info(
            "store %s: %s; %d records verified in %.0f ms",
            self.config.store,
            _how_it_ended(report),
            report.record_count,
            report.duration_ms,
        )
        for damage in report.damages:
            logger.error("store %s: set aside %s", self.config.store, damage)
        return store


async def _flushed(store: MessageStore) -> None:
    """Returns when who waits for the disk has been answered: a sender that hears nothing sends again."""
    flushed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def tell(_: Exception | None) -> None:
        if not flushed.done():
            flushed.set_result(None)

    store.when_flushed(store.max_commit_log_offset, tell)
    try:
        async with asyncio.timeout(FLUSH_AT_STOP_S):
            await flushed
    except TimeoutError:
        logger.warning("the disk did not take the last messages within %g s", FLUSH_AT_STOP_S)


def _how_it_ended(report: RecoveryReport) -> str:
    if report.end == 0:
        return "new"
    return "closed cleanly before" if report.was_clean else "recovered after an abrupt end"
