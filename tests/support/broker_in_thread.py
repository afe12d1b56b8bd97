"""Our broker in the test's own process, on real sockets, so that a test can make it slow or impatient."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

from broker.engine.config import BrokerConfig
from broker.engine.runtime import BrokerRuntime
from tests.support.waiting import WITHIN_S


class BrokerInThread:
    """Starts on entering, is gone on leaving. `settings` are those of its BrokerConfig."""

    def __init__(self, store: Path, **settings: Any) -> None:
        self.runtime = BrokerRuntime(BrokerConfig(store=store, port=0, namesrv_port=0, flush="sync", **settings))
        self.loop = asyncio.new_event_loop()
        # Of one that does not start or stop, the test fails, and the run goes on to its end.
        self._thread = threading.Thread(target=self.loop.run_forever, name="broker", daemon=True)

    def __enter__(self) -> BrokerInThread:
        self._thread.start()
        try:
            self.run(self.runtime.start())
        except BaseException:
            self._end_thread()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.run(self.runtime.stop())
        finally:
            self._end_thread()

    def _end_thread(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(WITHIN_S)
        self.loop.close()

    def run(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(WITHIN_S)

    @property
    def namesrv(self) -> str:
        return f"127.0.0.1:{self.runtime.config.namesrv_port}"

    def stored(self, topic: str) -> int:
        store = self.runtime.broker.store
        return sum(store.max_offset(topic, queue_id) for queue_id in range(8))
