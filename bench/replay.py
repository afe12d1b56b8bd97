"""Measures how many dead letters a second one replay sends: ledger written, each claimed, sent, its outcome kept.

To our broker, with both flush modes, from SQLite on the disk; the rate that was asked for is no bound.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from mqadmin.observing.gateway import Gateway, ask
from remoting.wire.bodies.topics import TopicConfig
from tests.support.children import Child
from tests.support.install import manage
from tests.support.our_broker import OurBroker

MESSAGES = 20_000
RATE = 10_000
TOPIC = "bench-replay"
WITHIN_S = 600.0
ROOT = Path(__file__).parents[1]


def main() -> None:
    print(f"{f'{MESSAGES:,} dead letters, one replay':<44}{'messages/s':>12}")
    for flush in ("sync", "async"):
        print(f"{f'--flush {flush}':<44}{measure(flush):>12,.0f}")


def measure(flush: str) -> float:
    """Returns messages a second, from the start of the driving process on."""
    with tempfile.TemporaryDirectory() as folder, OurBroker(Path(folder) / "store", flush) as broker:
        data = Path(folder) / "data"
        data.mkdir(mode=0o700)
        env = {"MQADMIN_DATA": str(data), "DATABASE_URL": "", "REDIS_URL": ""}
        manage(env, "migrate", "--verbosity=0")
        config = TopicConfig(topic_name=TOPIC)

        async def create(gateway: Gateway) -> None:
            failures = await gateway.topics.create({broker.broker: config})
            assert not failures, failures

        ask(broker.namesrv, create)
        number = run(data, env, "seed", broker.namesrv, broker.broker, TOPIC, str(MESSAGES), str(RATE))
        began_s = time.monotonic()
        run(data, env, "drive", number)
        return MESSAGES / (time.monotonic() - began_s)


def run(data: Path, env: dict[str, str], *arguments: str) -> str:
    """Returns the last line of what the process prints."""
    child = Child([sys.executable, "-m", "tests.support.replay_process", *arguments], data / "log", cwd=ROOT, env=env)
    if child.ended(WITHIN_S) != 0:
        raise RuntimeError(child.output())
    return (child.output().splitlines() or [""])[-1]
