"""Apache's Java client as a process that a test drives (tests/java/driver).

Each producer and consumer is a RocketMQ client of its own, with the client id that `producer` and `consumer` return.
"""

from __future__ import annotations

from pathlib import Path

from tests.support.java import DRIVER, QUICK_JVM, java_command
from tests.support.line_driver import DriverError, LineDriver

VERSIONS = ("5.4.0", "4.9.8")


class JavaError(DriverError):
    """What Apache's client threw."""


class JavaClient(LineDriver):
    """`JavaClient("5.4.0", folder)` as a context manager; `namesrv` is the default for producers and consumers.

    Options of `producer`: compress_over, retries, namesrv; of `consumer` and `admin`: see Consumers.java (expression,
    fail_until, orderly, …) and Admins.java (route, clusters, topics, connections, …).
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
        serialize = ("-Drocketmq.serialize.type=ROCKETMQ",) if binary_headers else ()
        classpath = [DRIVER / f"classes-{version}", DRIVER / f"lib-{version}"]
        super().__init__(java_command(classpath, "Driver", folder, (*jvm, *serialize)), folder, namesrv)

    def queues(self, consumer: str, topic: str) -> set[int]:
        """Ids of the topic's queues that this member holds now."""
        held = self.call("queues", name=consumer)
        return {queue["queue_id"] for queue in held if queue["topic"] == topic}
