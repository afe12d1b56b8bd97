"""One message that its listener always refuses, per cluster and client version, begun early and judged late."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.support.java_client import JavaClient
from tests.support.waiting import wait_until

# Two returns, and the third failure makes it a dead letter.
RETURNS_MAX = 2


@dataclass(frozen=True, slots=True)
class Retry:
    topic: str
    group: str
    consumer: str
    msg_id: str


class Retries:
    """`begin` is cheap when the pair's retry is under way already."""

    def __init__(self) -> None:
        self._begun: dict[tuple[str, str], Retry] = {}

    def begin(self, cluster: Any, java: JavaClient) -> Retry:
        key = (cluster.name, java.version)
        if key not in self._begun:
            self._begun[key] = _begin(java, "-".join(key).replace(".", ""))
        return self._begun[key]


def _begin(java: JavaClient, word: str) -> Retry:
    topic, group, producer, consumer = f"refused-{word}", f"refusers-{word}", f"sender-{word}", f"refuser-{word}"
    java.producer(producer)
    java.send(producer, topic, body="warm-up-")
    # The first member's heartbeat makes the retry topic, but a client looks for its route only every 20 s. A second
    # start finds it at once.
    java.consumer(f"{consumer}-first", group, topic)
    java.wait_consumed(1, f"{consumer}-first")
    java.stop(f"{consumer}-first")
    java.consumer(consumer, group, topic, fail_until=99, max_reconsume_times=RETURNS_MAX)
    wait_until(lambda: java.queues(consumer, f"%RETRY%{group}"), what="the queue of the retry topic")
    (result,) = java.send(producer, topic, tag="tag", keys="key", body="refused-")
    java.stop(producer)
    return Retry(topic, group, consumer, result["msg_id"])
