"""One supervised process: how it is started, when it is ready, how it is stopped.

Every child leads a session of its own, so that Ctrl-C reaches only the parent, and gets the signal that stops it when
the parent dies (`parent_death.py`), so that it never outlives even a parent that was killed.

systemd and containers send SIGTERM to every process at once. A child that others need until they have ended must not
take it: it is started with SIGTERM blocked, and its parent stops it by SIGINT when its turn comes.
"""

from __future__ import annotations

import asyncio
import math
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from mqadmin.supervision.fork_server import CannotFork, ForkedProcess, ForkServer
from mqadmin.supervision.parent_death import END_WITH_PARENT, EndWithParent

# What the command of a process that may be forked begins with.
PYTHON_MODULE = (sys.executable, "-m")
# The end of a child's output, shown when it fails.
LAST_LINES_MAX = 12
LINE_BYTES_MAX = 64 * 1024
# How long the output that an ended child left in the pipe is waited for.
LAST_OUTPUT_S = 2.0
# Lines that a quiet child printed before it was ready may be read a moment later.
QUIET_AFTER_READY_S = 0.5


@dataclass(frozen=True)
class ChildSpec:
    """A program to run and keep running. It is ready once `ready()` is true or, without it, `ready_text` is printed.

    `runs_once`: it is to end, and is ready once it has ended with 0. `is_quiet`: output from before it is ready is
    shown only if it fails, output while it stops never. `stop_grace_s`: from the stop signal to SIGKILL.
    `stops_group`: the signal goes to the whole process group; Celery's main process must get it alone, because it stops
    its own children. `outlives_sigterm`: SIGTERM is blocked in it, and it is stopped by SIGINT. `is_forked`: the
    command is `python -m …`, and the install's fork server forks the process where there is one.
    """

    name: str
    command: tuple[str, ...]
    ready_text: str | None = None
    ready: Callable[[], bool] | None = None
    ready_timeout_s: float = 30.0
    stop_grace_s: float = 10.0
    stops_group: bool = True
    outlives_sigterm: bool = False
    is_quiet: bool = False
    is_forked: bool = False
    runs_once: bool = False
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def stop_signal(self) -> signal.Signals:
        return signal.SIGINT if self.outlives_sigterm else signal.SIGTERM


class Child:
    """A process that runs a spec. `on_line(name, line)` is called with each line that it prints."""

    def __init__(
        self,
        spec: ChildSpec,
        on_line: Callable[[str, str], None],
        end_with_parent: EndWithParent = END_WITH_PARENT,
        fork_server: ForkServer | None = None,
    ) -> None:
        self.spec = spec
        self._end_with_parent = end_with_parent
        self._fork_server = fork_server
        self._on_line = on_line
        self._process: asyncio.subprocess.Process | ForkedProcess | None = None
        self._reader: asyncio.Task[None] | None = None
        self._ready_text_seen = asyncio.Event()
        self._quiet_until_s = math.inf if spec.is_quiet else 0.0
        self.last_lines: deque[str] = deque(maxlen=LAST_LINES_MAX)
        self.started_s = 0.0
        self._is_gone = False

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def start(self) -> None:
        """Starts the program. Raises OSError when it cannot be run."""
        self.started_s = time.monotonic()
        # A pipe of our own: asyncio's would make the end of the process wait for all who inherited its output.
        read_end, write_end = os.pipe()
        try:
            self._process = await self._forked(write_end) or await self._executed(write_end)
        except BaseException:
            os.close(read_end)
            raise
        finally:
            os.close(write_end)
        self._reader = asyncio.create_task(self._read(read_end), name=f"{self.spec.name}-output")

    async def _forked(self, output: int) -> ForkedProcess | None:
        """Returns the process as the fork server forked it, None where it is to be started anew."""
        if self._fork_server is None or not self.spec.is_forked:
            return None
        assert not self.spec.outlives_sigterm, f"{self.spec.name}: a forked process would take SIGTERM"
        words = self.spec.command[len(PYTHON_MODULE) :]
        try:
            return await self._fork_server.fork(words, self.spec.environment, output, self.spec.stop_signal)
        except CannotFork as error:
            self._on_line(self.spec.name, f"takes longer to start: {error}")
            return None

    async def _executed(self, output: int) -> asyncio.subprocess.Process:
        parent = os.getpid()
        return await asyncio.create_subprocess_exec(
            *self.spec.command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=lambda: self._before_program(parent),
            env={**os.environ, "PYTHONUNBUFFERED": "1", **self.spec.environment},
        )

    async def wait_ready(self) -> bool:
        """Returns True when the child is ready, False when it ended or its time is over."""
        deadline = time.monotonic() + self.spec.ready_timeout_s
        while time.monotonic() < deadline and self.is_running:
            if await self._is_ready():
                self._quiet_until_s = time.monotonic() + QUIET_AFTER_READY_S if self.spec.is_quiet else 0.0
                return True
            await asyncio.sleep(0.05)
        if self.is_running:
            return False
        code = await self.wait()  # with its last output, which says why
        return self.spec.runs_once and code == 0

    async def _is_ready(self) -> bool:
        if self.spec.runs_once:
            return False
        if self.spec.ready is not None:
            return await asyncio.to_thread(self.spec.ready)
        return self.spec.ready_text is None or self._ready_text_seen.is_set()

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    @property
    def exit_code(self) -> int | None:
        return self._process.returncode if self._process is not None else None

    async def wait(self) -> int:
        """Waits for the end of the child; returns its exit code, negative for a signal.

        Its whole process group is gone then, and all its output has been given to `on_line`.
        """
        assert self._process is not None
        assert self._reader is not None
        code = await self._process.wait()
        if self._is_gone:
            return code  # another process may have its number by now
        self._signal_group(signal.SIGKILL)
        # A process that left the group may hold the output open for ever.
        await asyncio.wait({self._reader}, timeout=LAST_OUTPUT_S)
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)
        self._is_gone = True
        return code

    async def stop(self) -> None:
        """Sends the stop signal and, after the grace, SIGKILL to the whole group. Returns when the child is gone."""
        if self._process is None:
            return
        if self.is_running:
            self._quiet_until_s = math.inf if self.spec.is_quiet else 0.0
            if self.spec.stops_group:
                self._signal_group(self.spec.stop_signal)
            else:
                self._process.send_signal(self.spec.stop_signal)
            try:
                async with asyncio.timeout(self.spec.stop_grace_s):
                    await self._process.wait()
            except TimeoutError:
                self._on_line(self.spec.name, f"did not stop within {self.spec.stop_grace_s:g} s; killed")
                self._signal_group(signal.SIGKILL)
        await self.wait()

    def _before_program(self, parent: int) -> None:
        """Runs in the forked child before its program."""
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if self.spec.outlives_sigterm:
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        self._end_with_parent(parent, self.spec.stop_signal)

    def _signal_group(self, number: int) -> None:
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            pass

    async def _read(self, read_end: int) -> None:
        reader = asyncio.StreamReader(limit=LINE_BYTES_MAX)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(read_end, "rb", buffering=0)
        )
        try:
            while raw := await _read_line(reader):
                self._take_line(raw.decode(errors="replace").rstrip())
        finally:
            transport.close()

    def _take_line(self, line: str) -> None:
        if not line:
            return
        self.last_lines.append(line)
        if self.spec.ready_text is not None and self.spec.ready_text in line:
            self._ready_text_seen.set()
        if time.monotonic() >= self._quiet_until_s:
            self._on_line(self.spec.name, line)


async def _read_line(reader: asyncio.StreamReader) -> bytes:
    """Returns the next line, b"" at the end. A line over the limit loses its beginning."""
    while True:
        try:
            return await reader.readline()
        except ValueError:
            continue
