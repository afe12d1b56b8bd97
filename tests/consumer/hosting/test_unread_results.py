"""A pool's main process that stops and waits for no result any more: its processes end all the same."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.children import Child

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
ENDED_WITHIN_S = 60.0
# Celery's pool, as a worker has it: its main process hands out a task and stops before it hears that it has begun.
PROGRAM = """
import operator, select, sys
from celery.concurrency.asynpool import AsynPool
from kombu.asynchronous import Hub
from consumer.hosting.unread_results import read_results_to_the_end

read_results_to_the_end()
hub = Hub()
pool = AsynPool(processes=2, threads=False)
pool.register_with_event_loop(hub)
job = pool.apply_async(operator.mul, ("x", int(sys.argv[1])))
loop = hub.create_loop()
while job._write_to is None or pool._active_writers:
    next(loop)
print("handed out", flush=True)
select.select([job._write_to.outq._reader], [], [])
pool.flush()
print("forgotten" if not pool._cache and not job.ready() else "waited for", flush=True)
pool.close()
pool.join()
print([process.exitcode for process in pool._pool], flush=True)
"""


# The same pool, one of whose processes is killed while it writes a result that is longer than a pipe holds.
KILLED = (
    PROGRAM[: PROGRAM.index("pool.flush()")]
    + """
import fcntl, os, signal, struct, termios, threading, time
writing = next(process for process in pool._pool if process.outq is job._write_to.outq)

def unread_bytes():
    return struct.unpack("i", fcntl.ioctl(writing.outq._reader.fileno(), termios.FIONREAD, bytes(4)))[0]

# It has begun to write the result: what it said before is shorter.
while unread_bytes() < 16_384:
    time.sleep(0.01)
os.kill(writing.pid, signal.SIGSTOP)

def kill_once_the_rest_is_waited_for():
    while unread_bytes():
        time.sleep(0.01)
    os.kill(writing.pid, signal.SIGKILL)

threading.Thread(target=kill_once_the_rest_is_waited_for).start()
pool.close()
pool.join()
print("ended", flush=True)
"""
)


def test_a_pool_ends_whose_process_was_killed_while_it_wrote_a_result(tmp_path: Path) -> None:
    child = Child([sys.executable, "-c", KILLED, "1000000"], tmp_path / "pool.log", cwd=ROOT, env={})
    try:
        assert child.process.wait(ENDED_WITHIN_S) == 0, child.output()
        assert child.output().split("\n")[-2:] == ["ended", ""]
    finally:
        child.kill()


@pytest.mark.parametrize("length", [1, 64 * 1024, 1_000_000], ids=["short", "fills a pipe", "longer than a pipe"])
def test_a_process_with_the_result_of_a_forgotten_task_ends(tmp_path: Path, length: int) -> None:
    child = Child([sys.executable, "-c", PROGRAM, str(length)], tmp_path / "pool.log", cwd=ROOT, env={})
    try:
        assert child.process.wait(ENDED_WITHIN_S) == 0, child.output()
        assert child.output().split("\n") == ["handed out", "forgotten", "[0, 0]", ""]
    finally:
        child.kill()
