"""The contract with Apache's Java clients: one scenario, run on Apache's broker and on ours, must give the same result.

A scenario is a function of a ScenarioRun that returns what was observed, as plain values without anything that differs
from run to run. `@compares(scenario)` on a test has it run for each client version and broker; the test calls `seen()`,
which waits for the runs, asserts that both brokers gave the same result, and returns it, for the test to say what it
should be.

Most scenarios wait more than they work, so all of a session run side by side in a few threads, in the order of their
tests, each with topics and groups of its own.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from tests.support.apache import ApacheRocketMQ
from tests.support.java_client import VERSIONS, JavaClient, JavaError, message_queue
from tests.support.our_broker import OurBroker
from tests.support.waiting import WITHIN_S, wait_until

Scenario = Callable[["ScenarioRun"], Any]
# Two cores: what waits costs nothing, what works should not starve.
RUNS_AT_ONCE = 8
# From when a test asks for it; the queue before it included.
RUN_WITHIN_S = 500.0
# Every record of ours ends with it; one of Apache's where `enabledAppendPropCRC` is set.
RECORD_CHECK = "__CRC32#"
# The admin library's code for a group that has committed nothing.
CONSUMER_NOT_ONLINE = 206
_HEX_ID = re.compile(r"\b[0-9A-F]{32}\b")
_HOST = re.compile(r"\d+\.\d+\.\d+\.\d+(:\d+)?")
# Properties that no two runs share, and what stands for them.
_VOLATILE = {
    "UNIQ_KEY": "id",
    "ORIGIN_MESSAGE_ID": "id",
    "DLQ_ORIGIN_MESSAGE_ID": "id",
    "__transactionId__": "id",
    "CORRELATION_ID": "id",
    "CONSUME_START_TIME": "time",
    "ARRIVE_TIME": "time",
    "PUSH_REPLY_TIME": "time",
    "REPLY_MESSAGE_ARRIVE_TIME": "time",
    "TIMER_OUT_MS": "time",
    "TIMER_ENQUEUE_MS": "time",
    "TIMER_DEQUEUE_MS": "time",
    "TIMER_DELIVER_MS": "time",
    "MIN_OFFSET": "offset",
    "MAX_OFFSET": "offset",
    "REPLY_TO_CLIENT": "client",
}


def compares(scenario: Scenario, *versions: str) -> Callable[[Any], Any]:
    """For a test: the scenario whose results it compares, with these versions of the client (all if none is named)."""

    def mark(test: Any) -> Any:
        test.scenario, test.versions = scenario, versions or VERSIONS
        return test

    return mark


@dataclass
class ScenarioRun:
    """One broker, one client version, and names that no other run uses.

    Topics and groups have the same names on both brokers; clients have not, because a process may hold only one client
    of a name. `normalized` gives all of them their short words back.
    """

    java: JavaClient
    cluster: OurBroker | ApacheRocketMQ
    number: str
    other_java: JavaClient | None = None
    _beside: list[ScenarioRun] = field(default_factory=list)
    _names: dict[str, str] = field(default_factory=dict)
    _started: list[str] = field(default_factory=list)

    @property
    def broker(self) -> str:
        """host:port."""
        return self.cluster.broker

    @property
    def is_version_4(self) -> bool:
        return self.java.version.startswith("4.")

    # names and parts

    def shared(self, word: str) -> str:
        """The name of a topic or group."""
        return self._named(f"{word}-{self.number}", word)

    def _named(self, name: str, word: str) -> str:
        self._names[name] = word
        return name

    def topic(self, word: str = "topic", queues: int = 1, **config: Any) -> str:
        """Made by the admin library; `config`: perm and the other fields of TopicConfig."""
        return self.topic_named(self.shared(word), queues, **config)

    def topic_named(self, name: str, queues: int = 1, **config: Any) -> str:
        sizes = {"readQueueNums": queues, "writeQueueNums": queues}
        fields = {"topicName": name, "perm": 6, **sizes, **config}
        self.java.admin_call("createAndUpdateTopicConfig", self.broker, fields)
        return name

    def change_topic(self, topic: str, **config: int) -> None:
        """Returns when the name server gives the topic's new numbers of queues and permission as its route.

        Apache's broker registers a change at once, but beside its periodic registration of all topics: the older state
        may arrive last, and then stays until the next change. So a change that isn't seen is made again, with another
        `order`, which no route tells of: 5.4.0 registers nothing where all is as it was.
        """
        wanted = {"readQueueNums": 1, "writeQueueNums": 1, "perm": 6, **config}
        orders = itertools.cycle((False, True))

        def is_routed() -> bool:
            fields = {"topicName": topic, **wanted, "order": next(orders)}
            self.java.admin_call("createAndUpdateTopicConfig", self.broker, fields)
            (queues,) = self.java.admin_call("examineTopicRouteInfo", topic)["queueDatas"]
            return all(queues[name] == value for name, value in wanted.items())

        wait_until(is_routed, what=f"the route of {topic} with {wanted}")

    def group(self, word: str = "group", **config: Any) -> str:
        """Known to the broker, with its retry topic, which otherwise a first member finds only after 20 s."""
        name = self.shared(word)
        self.java.admin_call("createAndUpdateSubscriptionGroupConfig", self.broker, {"groupName": name, **config})
        self.topic_named(f"%RETRY%{name}")
        return name

    def client(self, word: str) -> str:
        """The name of a producer or consumer to be started by the scenario; stopped at the end."""
        name = self._named(f"{word}-{self.number}-{self.cluster.name}", word)
        self._started.append(name)
        return name

    def producer(self, word: str = "producer", **options: Any) -> str:
        name = self.client(word)
        self.java.producer(name, self.shared(f"{word}-group"), **options)
        return name

    def consumer(self, group: str, topic: str | None = None, word: str = "consumer", **options: Any) -> str:
        """A push consumer. It sends a heartbeat every 2 s: one that is notified of itself while its first heartbeat is
        under way loses the next, and is refused as "not the latest" until the one after, by default 30 s later. As it
        stops it first finishes what it has begun, so that its last progress is no matter of chance."""
        name = self.client(word)
        finishing = {"awaitTerminationMillisWhenShutdown": 5_000}
        settings = {"heartbeatBrokerInterval": 2_000, **finishing, **options.pop("set", {})}
        self.java.consumer(name, group, topic, set=settings, **options)
        return name

    def wait_for_queues(self, consumer: str, topic: str, count: int = 1, within_s: float = WITHIN_S) -> None:
        """Returns when the member holds so many of the topic's queues."""
        held = lambda: len(self.java.queues(consumer, topic)) == count  # noqa: E731 - read twice as a word
        wait_until(held, within_s, f"{count} queues of {topic} at {consumer}")

    def pull(self, consumer: str, topic: str, queue_offset: int, queue_id: int = 0, tags: str = "*") -> Any:
        """With a DefaultMQPullConsumer, at once."""
        return self.java.invoke(consumer, "pull", message_queue(topic, queue_id), tags, queue_offset, 32)

    def committed(self, group: str, topic: str) -> dict[int, int]:
        """Queue id → committed offset. A member commits every few seconds and as it stops."""
        try:
            rows = self.java.admin("consume_stats", group=group)
        except JavaError as error:
            if error.code != CONSUMER_NOT_ONLINE:
                raise
            return {}
        return {row["queue_id"]: row["committed_offset"] for row in rows if row["topic"] == topic}

    def stop(self, name: str) -> None:
        self._started.remove(name)
        self.java.stop(name)

    def close(self) -> None:
        for run in self._beside:
            run.close()
        for name in reversed(self._started):
            self.java.stop(name)

    def other_version(self) -> ScenarioRun:
        """The same run with the other version of the client: same topics and groups, clients of its own."""
        if self.other_java is None:
            raise AssertionError("there is no other client")
        run = ScenarioRun(self.other_java, self.cluster, self.number, self.java, _names=self._names)
        self._beside.append(run)
        return run

    # observations

    def refusal(self, act: Callable[[], Any]) -> Any:
        """The act's value, or how it was refused: kind of exception, and RocketMQ's code."""
        try:
            return act()
        except JavaError as error:
            return {"kind": error.kind, "code": error.code}

    def comparable(self, message: dict[str, Any], *without: str) -> dict[str, Any]:
        """Of a message what any two runs share; `without` names properties that don't matter here."""
        fields = ("topic", "tags", "keys", "flag", "body", "size", "reconsume_times", "queue_id", "sys_flag")
        observed = {name: message[name] for name in fields if name in message}
        observed["properties"] = {
            name: _VOLATILE.get(name, value)
            for name, value in message["properties"].items()
            if name not in (*without, RECORD_CHECK)
        }
        return self.normalized(observed)

    def normalized(self, value: Any) -> Any:
        """With the words of names, and without ids and hosts."""
        if isinstance(value, dict):
            return {self.normalized(key): self.normalized(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self.normalized(each) for each in value]
        if not isinstance(value, str):
            return value
        for name in sorted(self._names, key=len, reverse=True):
            value = value.replace(name, self._names[name])
        return _HOST.sub("host", _HEX_ID.sub("id", value))


def bodies(messages: Iterable[dict[str, Any]]) -> list[str]:
    return [message["body"] for message in messages]


def gaps_ms(events: Iterable[dict[str, Any]]) -> list[int]:
    """The times between each and the next."""
    return [later["at_ms"] - sooner["at_ms"] for sooner, later in itertools.pairwise(events)]


@dataclass
class Results:
    ours: Future[Any]
    apache: Future[Any]


class ScenarioRuns:
    """Every scenario of the session, per version; begun in the order of `submit`."""

    def __init__(self, ours: OurBroker, apache: ApacheRocketMQ, clients: dict[str, JavaClient]) -> None:
        self._brokers = (ours, apache)
        self._clients = clients
        self._threads = ThreadPoolExecutor(RUNS_AT_ONCE, "contract")
        self._results: dict[tuple[Scenario, str], Results] = {}

    def submit(self, scenario: Scenario, version: str) -> None:
        if (scenario, version) not in self._results:
            number = f"{len(self._results)}-{version.replace('.', '')}"
            runs = [self._threads.submit(self._run, scenario, version, broker, number) for broker in self._brokers]
            self._results[scenario, version] = Results(*runs)

    def _run(self, scenario: Scenario, version: str, broker: OurBroker | ApacheRocketMQ, number: str) -> Any:
        (other,) = (client for name, client in self._clients.items() if name != version)
        here = [client.on(broker.namesrv) for client in (self._clients[version], other)]
        run = ScenarioRun(here[0], broker, number, here[1])
        try:
            return scenario(run)
        finally:
            run.close()

    def results_of(self, scenario: Scenario, version: str) -> Results:
        return self._results[scenario, version]

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)
