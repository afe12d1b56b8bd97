"""Apache's Java client as a process that a test drives (tests/java/driver).

Each producer and consumer is a RocketMQ client of its own, with the client id that `producer` and `consumer` return.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from remoting.wire.codes import ResponseCode
from tests.support.client_process import ANSWER_WITHIN_S, ClientProcess, ClientProcessError
from tests.support.java import DRIVER, QUICK_JVM, java_command
from tests.support.waiting import wait_until

VERSIONS = ("5.4.0", "4.9.8")
# 5 s were too few once, on busy cores.
TABLE_WITHIN_MS = 60_000
# 3 s by default, which may pass on busy cores before a thread has its turn.
CONNECT_WITHIN_MS = 30_000


class JavaError(ClientProcessError):
    """What Apache's client threw."""


class JavaClient(ClientProcess):
    """`JavaClient("5.4.0", folder)` as a context manager; `namesrv` is the default for producers and consumers.

    Options of `producer`, `send`, `consumer` and `admin`: see Producers.java (transactional, set, …), Messages.java,
    Consumers.java and Listener.java (expression, orderly, outcomes, …) and Admins.java (route, clusters, topics, …).
    """

    error = JavaError

    def __init__(
        self,
        version: str,
        folder: Path,
        namesrv: str = "",
        *,
        binary_headers: bool = False,
        jvm: tuple[str, ...] = QUICK_JVM,
    ) -> None:
        self.version = version
        settings = [f"-Dcom.rocketmq.remoting.client.connect.timeout={CONNECT_WITHIN_MS}"]
        if binary_headers:
            settings.append("-Drocketmq.serialize.type=ROCKETMQ")
        classpath = [DRIVER / f"classes-{version}", DRIVER / f"lib-{version}"]
        super().__init__(java_command(classpath, "Driver", folder, (*jvm, *settings)), folder, namesrv)

    def queues(self, consumer: str, topic: str) -> set[int]:
        """Ids of the topic's queues that this member holds now."""
        held = self.call("queues", name=consumer)
        return {queue["queue_id"] for queue in held if queue["topic"] == topic}

    def is_routed(self, topic: str) -> bool:
        """Whether the name server lists the topic: it does while it has a route to it."""
        return topic in self.admin("topics")

    def wait_routed(self, topic: str) -> None:
        """Raises AssertionError after the deadline. Apache's broker registers a new topic a little later."""
        wait_until(lambda: self.is_routed(topic), what=f"a route to {topic}")

    def wait_not_routed(self, topic: str) -> None:
        wait_until(lambda: not self.is_routed(topic), what=f"no route to {topic} any more")

    def pull_consumer(self, name: str, group: str, **settings: Any) -> str:
        """A DefaultMQPullConsumer; its methods by `invoke`. Settings by their Java names (registerTopics, …)."""
        return self.call("pull_consumer", name=name, group=group, namesrv=self.namesrv, set=settings)

    def lite_pull_consumer(self, name: str, group: str, *topics: str | dict[str, str], **settings: Any) -> str:
        """A DefaultLitePullConsumer; a topic may be {"topic":…, "expression" or "sql":…}."""
        wanted = [topic if isinstance(topic, dict) else {"topic": topic} for topic in topics]
        there = {"name": name, "group": group, "namesrv": self.namesrv}
        return self.call("lite_pull_consumer", **there, subscriptions=wanted, set=settings)

    def invoke(self, name: str, method: str, *arguments: Any, within_s: float = ANSWER_WITHIN_S) -> Any:
        """Any public method of a started client. Arguments as Reflection.java reads them (see `message_queue`)."""
        return self.call("call", within_s, name=name, method=method, arguments=arguments)

    def admin_call(self, method: str, *arguments: Any) -> Any:
        """Any method of DefaultMQAdminExt."""
        return self.admin("call", method=method, arguments=arguments)

    def running_info(self, group: str, client_id: str, *, with_stacks: bool = False) -> dict[str, Any]:
        """What the member says of itself. Asks again while the broker has waited for the member in vain, for 10 s."""

        def answer() -> dict[str, Any] | None:
            try:
                return self.admin_call("getConsumerRunningInfo", group, client_id, with_stacks)
            except JavaError as error:
                if error.code != ResponseCode.CONSUME_MSG_TIMEOUT:
                    raise
                return None

        return wait_until(answer, what=f"an answer of {client_id}")

    def group_configs(self, broker: str) -> dict[str, Any]:
        """The settings of all groups on the broker at this address."""
        return self.admin_call("getAllSubscriptionGroup", broker, TABLE_WITHIN_MS)["subscriptionGroupTable"]

    def topic_configs(self, broker: str) -> dict[str, Any]:
        """The settings of all topics on the broker at this address."""
        return self.admin_call("getAllTopicConfig", broker, TABLE_WITHIN_MS)["topicConfigTable"]


def message_queue(topic: str, queue_id: int = 0) -> dict[str, Any]:
    """A MessageQueue, as an argument of `invoke` and `admin_call`."""
    return {"topic": topic, "queue_id": queue_id}
