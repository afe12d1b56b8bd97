"""One message per cluster that a listener of ours always refuses, begun early and judged late."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remoting.client.producer import Producer
from tests.support.children import Child
from tests.support.patience import answered
from tests.support.refusing import GROUP, TOPIC

ROOT = Path(__file__).parents[2]
TAGS, KEYS, BODY = "paid", "order-17", "refused"


@dataclass(frozen=True, slots=True)
class Refusal:
    """`consumer` is `manage.py runconsumer`, as a user would run it."""

    message_id: str
    consumer: Child

    def deliveries(self) -> list[dict[str, Any]]:
        """So far, as tests/support/refusing prints them."""
        lines = self.consumer.output().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("\n")]


class Refusals:
    """`begin` is cheap when the cluster's refusal is under way already."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._begun: dict[str, Refusal] = {}

    def begin(self, cluster: Any) -> Refusal:
        if cluster.name not in self._begun:
            self._begun[cluster.name] = self._begin(cluster)
        return self._begun[cluster.name]

    def _begin(self, cluster: Any) -> Refusal:
        message_id = asyncio.run(_send(cluster.namesrv))
        command = [sys.executable, "manage.py", "runconsumer", GROUP, "--namesrv", cluster.namesrv]
        log = self._folder / f"{cluster.name}.log"
        consumer = Child(command, log, cwd=ROOT, env={"MQADMIN_APPS": "tests.support.refusing"})
        return Refusal(message_id, consumer)

    def close(self) -> None:
        for refusal in self._begun.values():
            refusal.consumer.kill()


async def _send(namesrv: str) -> str:
    producer = Producer(namesrv, "refused", timeout_ms=60_000)
    await producer.start()
    try:
        return (await answered(producer.send, TOPIC, BODY.encode(), tags=TAGS, keys=KEYS)).message_id
    finally:
        await producer.close()
