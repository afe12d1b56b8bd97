"""Apache's Go client as a process that a test drives (tests/go/driver). It keeps its files in the given folder.

Each producer and consumer is a RocketMQ client of its own. Options of `producer`: retries, compress_over, namespace,
trace, transaction; of `consumer`: see consumers.go (expression, sql, fail_until, orderly, pull, …). `admin` knows
create_topic, delete_topic, topics, groups, queues.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.client_process import ClientProcess, ClientProcessError
from tests.support.tools import require

DRIVER = Path(__file__).parents[1] / "go/driver/target/driver"
# The client's own log, on the standard error: what it complains of.
_LOG_LEVEL = "warn"


class GoError(ClientProcessError):
    """What Apache's client returned as its error."""


class GoClient(ClientProcess):
    error = GoError

    def __init__(self, folder: Path, namesrv: str) -> None:
        require(DRIVER.exists(), "no Go driver: run tests/go/fetch.sh")
        super().__init__([str(DRIVER)], folder, namesrv, env={"HOME": str(folder), "ROCKETMQ_GO_LOG_LEVEL": _LOG_LEVEL})

    def pull(self, consumer: str, **options: Any) -> Any:
        """Options: topic, broker, queue, from, numbers; without a queue what the consumer's own loop has fetched."""
        return self.call("pull", name=consumer, **options)
