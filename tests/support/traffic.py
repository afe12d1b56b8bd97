"""Messages that keep coming while a test does something else."""

from __future__ import annotations

import asyncio
import threading
import uuid
from types import TracebackType

from remoting.client.producer import Producer
from tests.support.patience import answered
from tests.support.waiting import WITHIN_S


class Traffic:
    """Sends messages to all queues in turn, about a hundred a second, while the context is open."""

    def __init__(self, namesrv: str, topic: str) -> None:
        self._namesrv, self._topic = namesrv, topic
        self._name = uuid.uuid4().hex
        self._ended = threading.Event()
        self._first = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._send()), name="traffic")
        self.sent: list[str] = []

    def __enter__(self) -> Traffic:
        self._thread.start()
        assert self._first.wait(WITHIN_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    async def _send(self) -> None:
        producer = Producer(self._namesrv, "traffic", timeout_ms=60_000)
        await producer.start()
        try:
            while not self._ended.is_set():
                body = f"{self._name}-{len(self.sent)}"
                await answered(producer.send, self._topic, body.encode())
                self.sent.append(body)
                self._first.set()
                await asyncio.sleep(0.01)
        finally:
            await producer.close()
