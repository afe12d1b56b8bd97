"""A broker as a process runs it: its store, its ports, and the parts between them (`broker.py`).

Start: the ports are bound, kept settings count, the store recovers, the parts start, clients are let in. Stop, in this
order and for these reasons:
1. the name server closes, sends that wait for the disk are answered, and the broker's sockets close: nothing new comes;
2. the parts stop (`Broker.stop`), while the store can still say what is flushed;
3. the store flushes and closes, and lets go of its folder.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging

from broker.engine.broker import Broker
from broker.engine.config import BrokerConfig
from broker.engine.pipeline import fill_tables
from broker.engine.schedule.level_history import LevelHistory
from broker.engine.schedule.levels import parse_levels
from broker.engine.serving.request_table import RequestTable
from broker.engine.settings import Settings
from broker.engine.store.message_store import MessageStore
from broker.engine.store.values import RecoveryReport, StoreConfig
from remoting.complaints import ComplaintLog
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
        self._complaints = complaints = ComplaintLog()
        self._name_server_table = RequestTable("name server", complaints)
        self._broker_table = RequestTable("broker", complaints)
        self._name_server = Server(self._name_server_table, connections_share=NAME_SERVER_SHARE, complaints=complaints)
        self.server = Server(self._broker_table, connections_share=BROKER_SHARE, complaints=complaints)
        self._store: MessageStore | None = None
        self._broker: Broker | None = None

    async def start(self) -> None:
        """Returns when both ports answer; `config` then holds the real ones."""
        # Bound first, because the port stands in every message id; served last, when there is something to answer.
        namesrv_port = await self._name_server.bind(self.config.host, self.config.namesrv_port)
        port = await self.server.bind(self.config.host, self.config.port)
        self.config = dataclasses.replace(self.config, port=port, namesrv_port=namesrv_port)
        settings = Settings(self.config, self._complaints)
        settings.load()
        first_levels = parse_levels(self.config.delay_levels)
        levels = LevelHistory(self.config.config_dir, first_levels, self._complaints)
        self._store = _open_store(self.config, levels, self._complaints)
        self._broker = Broker(
            config=self.config, settings=settings, levels=levels, store=self._store, complaints=self._complaints
        )
        self.broker.start()
        fill_tables(self._broker_table, self._name_server_table, self.broker)
        await self.server.serve()
        await self._name_server.serve()

    @property
    def broker(self) -> Broker:
        """Returns the parts of the broker, which has started."""
        assert self._broker is not None
        return self._broker

    async def stop(self) -> None:
        """Stops whatever was started, in the order of the module's note.

        Raises OSError; the store is closed all the same.
        """
        await self._name_server.close()
        if self._store is not None:
            await _flushed(self._store)
        await self.server.close()
        try:
            if self._broker is not None:
                await self._broker.stop()
        finally:
            if self._store is not None:
                self._store.close()


def _open_store(config: BrokerConfig, levels: LevelHistory, complaints: ComplaintLog) -> MessageStore:
    """Opens the store, and logs how it was found. Raises StoreError, OSError."""
    store_config = StoreConfig(flush=config.flush, delay_levels_at=levels.delays_ms_at)
    store = MessageStore.open(config.store, store_config, complaints=complaints)
    report = store.recovery
    logger.info(
        "store %s: %s; %d records verified in %.0f ms",
        config.store,
        _how_it_ended(report),
        report.record_count,
        report.duration_ms,
    )
    for damage in report.damages:
        logger.error("store %s: set aside %s", config.store, damage)
    return store


async def _flushed(store: MessageStore) -> None:
    """Returns when the sends that wait for the disk are answered: a sender without an answer sends again."""
    flushed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def done(_: Exception | None) -> None:
        if not flushed.done():
            flushed.set_result(None)

    store.when_flushed(store.max_commit_log_offset, done)
    try:
        async with asyncio.timeout(FLUSH_AT_STOP_S):
            await flushed
    except TimeoutError:
        logger.warning("the disk did not take the last messages within %g s", FLUSH_AT_STOP_S)


def _how_it_ended(report: RecoveryReport) -> str:
    if report.end == 0:
        return "new"
    return "closed cleanly before" if report.was_clean else "recovered after an abrupt end"
