"""Sends a second of our producer over one connection, against a broker that only says "stored" in another process."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from remoting.client.producer import Producer

BODY = b"x" * 1024
SENDS = 60_000
CONCURRENT = (1, 16, 256, 2048)


def main() -> None:
    with echo_broker() as address:
        for concurrent in CONCURRENT:
            sends = SENDS if concurrent > 1 else SENDS // 10
            rate, core_rate = asyncio.run(_measure(address, concurrent, sends))
            print(f"{concurrent:>5} at a time: {rate:>8,.0f} sends/s of 1 KiB, {core_rate:>8,.0f} per second of a core")


async def _measure(address: str, concurrent: int, sends: int) -> tuple[float, float]:
    """Sends a second, and sends per second that this process had a core."""
    producer = Producer(address, "bench")
    await producer.start()
    await producer.send("bench", BODY)

    async def sender(count: int) -> None:
        for _ in range(count):
            await producer.send("bench", BODY, timeout_ms=30_000)

    began_s, cpu_s = time.perf_counter(), time.process_time()
    await asyncio.gather(*(sender(sends // concurrent) for _ in range(concurrent)))
    took_s, cpu_took_s = time.perf_counter() - began_s, time.process_time() - cpu_s
    await producer.close()
    sent = sends // concurrent * concurrent
    return sent / took_s, sent / cpu_took_s


@contextmanager
def echo_broker() -> Iterator[str]:
    """Starts a broker process for the length of the block, and yields its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.echo_broker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.communicate("")


if __name__ == "__main__":
    main()
