"""Child processes of tests: their own session, their output in a file, and an end that is certain."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import psutil

# The longest that any of them gives itself is 20 s (a worker, for its messages in hand); more is for a busy machine.
STOP_GRACE_S = 60.0
# Below the range out of which the system gives ports to outgoing connections: one of those could take a port before the
# program that it is meant for has bound it.
_PORTS_FROM, _PORTS_PER_RANGE, _PORT_RANGES = 15_000, 500, 34
# Of linux/prctl.h.
_PR_SET_TIMERSLACK = 29
# A port is free until its program has bound it: one that was given is not given again, as long as there are others.
_given: deque[int] = deque(maxlen=_PORTS_PER_RANGE // 2)


def is_alive(process: psutil.Process) -> bool:
    """Tells whether it runs: one that has ended and waits for its parent to hear of it does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class Child:
    """One process. It dies with the thread that started it, should that thread die first (PR_SET_PDEATHSIG)."""

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdin: int = subprocess.DEVNULL,
        stdout: int | None = None,
    ) -> None:
        """Standard error goes to `log`, and standard output too unless `stdout` is `subprocess.PIPE`."""
        setpriv = shutil.which("setpriv")
        guard = [setpriv, "--pdeathsig", "KILL"] if setpriv else []
        self.log = log
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                [*guard, *command],
                env={**os.environ, **(env or {})},
                cwd=cwd,
                stdin=stdin,
                stdout=output if stdout is None else stdout,
                stderr=output,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    def output(self) -> str:
        """What it wrote so far, for waiting on a line and for the text of a failure."""
        return self.log.read_text(errors="replace")

    def kill(self) -> None:
        """SIGKILL to the process and all it started."""
        self._signal_group(signal.SIGKILL)
        self.process.wait()
        self._close_pipes()

    def stop(self, grace_s: float = STOP_GRACE_S) -> int:
        """SIGTERM, after `grace_s` SIGKILL. The exit code (negative: the signal that ended it)."""
        if self.is_running:
            self.process.terminate()
        return self.ended(grace_s)

    def ended(self, grace_s: float = STOP_GRACE_S) -> int:
        """Waits for the end of a process that was told to stop, without a signal of its own: Python's last steps run
        with the default handlers, and a second SIGTERM would be its exit code. After `grace_s` SIGKILL."""
        try:
            self.process.wait(grace_s)
        except subprocess.TimeoutExpired:
            pass
        self.kill()
        return self.process.returncode

    def _signal_group(self, number: int) -> None:
        # The number of a group with processes in it is given to no other process; a free one may be, minutes later.
        if self.process.returncode is not None and psutil.pid_exists(self.pid):
            return
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass

    def _close_pipes(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    pass


@contextlib.contextmanager
def timer_slack(slack_ms: int) -> Iterator[None]:
    """Lets what this thread starts meanwhile be woken so much late by its timers, together with others that are due
    (Linux). For processes that look for work hundreds of times a second, and stand idle for minutes.
    """
    if sys.platform != "linux":
        yield
        return
    prctl = ctypes.CDLL(None).prctl
    prctl(_PR_SET_TIMERSLACK, ctypes.c_ulong(slack_ms * 1_000_000))
    try:
        yield
    finally:
        prctl(_PR_SET_TIMERSLACK, ctypes.c_ulong(0))  # its own again


def free_port(*neighbours: int) -> int:
    """Returns a port that is free now on 127.0.0.1, and whose neighbours at the given distances are free as well."""
    first = _claimed_range().getsockname()[1]
    ends = (first + 1 - min(0, *neighbours, 0), first + _PORTS_PER_RANGE - max(0, *neighbours, 0))
    for _ in range(100):
        port = random.randrange(*ends)
        wanted = [port + distance for distance in (0, *neighbours)]
        if all(each not in _given and _is_free(each) for each in wanted):
            _given.extend(wanted)
            return port
    raise AssertionError(f"no free port with free neighbours {neighbours} in 100 tries")


@cache
def _claimed_range() -> socket.socket:
    """Claims a range of ports for this process, so that no other one, of another run either, picks the same.

    Returns a socket that is bound to the first of them, and is the sign of that as long as the process lives.
    """
    own = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    for number in range(own, own + _PORT_RANGES):
        sign = socket.socket()
        try:
            sign.bind(("127.0.0.1", _PORTS_FROM + number % _PORT_RANGES * _PORTS_PER_RANGE))
        except OSError:
            sign.close()
        else:
            atexit.register(sign.close)
            return sign
    raise AssertionError(f"all {_PORT_RANGES} ranges of ports are taken: end other runs of tests first")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
