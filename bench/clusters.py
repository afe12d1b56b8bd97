"""Starts the two clusters that benchmarks set side by side, and finds their processes."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

import psutil

from tests.support.apache import ApacheRocketMQ
from tests.support.our_broker import OurBroker

# A third of the heap in RocketMQ's own start script, which is meant for machines with nothing else on them.
APACHE_JVM = ("-Xms2g", "-Xmx2g", "-XX:+UseG1GC")

Cluster: TypeAlias = OurBroker | ApacheRocketMQ


def apache(folder: Path, flush: str, **settings: str) -> ApacheRocketMQ:
    """Starts Apache RocketMQ. `flush`: sync or async. `settings`: further lines of the broker's configuration."""
    usual = {"flushDiskType": f"{flush.upper()}_FLUSH", "mappedFileSizeCommitLog": str(1024**3)}
    return ApacheRocketMQ(folder / "apache", settings={**usual, **settings}, jvm=APACHE_JVM)


def processes(cluster: Cluster) -> list[int]:
    """Process ids of name server and broker, with all that they started."""
    pids = [cluster.pid] if isinstance(cluster, OurBroker) else [child.pid for child in cluster.children]
    return [process.pid for pid in pids for process in (psutil.Process(pid), *psutil.Process(pid).children(True))]
