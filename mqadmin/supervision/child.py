"""One supervised process: how it is started, when it is ready, how it is stopped.

Every child leads a session of its own, so that Ctrl-C reaches only the parent, and asks the kernel for SIGTERM when
the parent dies, so that it never outlives it, even a parent that was killed.
"""

from __future__ import annotations

import asyncio
import ctypes
import math
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None

# The end of what a child said, shown when it fails.
LAST_LINES_MAX = 12
LINE_BYTES_MAX = 64 * 1024
# How long to wait for what an ended child still had in the pipe.
LAST_OUTPUT_S = 2.0
# What a quiet child said before it was ready may be read a moment later.
QUIET_AFTER_READY_S = 0.5


@dataclass(frozen=True)
class ChildSpec:
    """What to run. `ready` is asked until it is true; without it, `ready_text` in the output says so.

    `is_quiet`: what it says before it is ready is shown only if it fails, and what it says while it stops is not.
    `stop_grace_s`: from SIGTERM to SIGKILL. `stops_group`: SIGTERM goes to the whole process group; Celery's main
    process wants it alone, because it tells its own children.
    """

    name: str
    command: tuple[str, ...]
    ready_text: str | None = None
    ready: Callable[[], bool] | None = None
    ready_timeout_s: float = 30.0
    stop_grace_s: float = 10.0
    stops_group: bool = True
    is_quiet: bool = False
    environment: dict[str, str] = field(default_factory=dict)


class Child:
    """A running process of a spec. `on_line` gets each line that it prints."""

    def __init__(self, spec: ChildSpec, on_line: Callable[[str, str], None]) -> None:
        self.spec = spec
        self._on_line = on_line
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._said_ready = asyncio.Event()
        self._quiet_until_s = math.inf if spec.is_quiet else 0.0
        self.last_lines: deque[str] = deque(maxlen=LAST_LINES_MAX)
        self.started_s = 0.0

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def start(self) -> None:
        """Raises OSError when the program cannot be run."""
        parent = os.getpid()
        self.started_s = time.monotonic()
        # A pipe of our own: asyncio's would make the end of the process wait for all who inherited its output.
        read_end, write_end = os.pipe()
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self.spec.command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=write_end,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=lambda: _die_with(parent),
                env={**os.environ, "PYTHONUNBUFFERED": "1", **self.spec.environment},
            )
        except OSError:
            os.close(read_end)
            raise
        finally:
            os.close(write_end)
        self._reader = asyncio.create_task(self._read(read_end), name=f"{self.spec.name}-output")

    async def wait_ready(self) -> bool:
        """False when it ended, or was not ready within its time."""
        deadline = time.monotonic() + self.spec.ready_timeout_s
        while time.monotonic() < deadline and self.is_running:
            if await self._is_ready():
                self._quiet_until_s = time.monotonic() + QUIET_AFTER_READY_S if self.spec.is_quiet else 0.0
                return True
            await asyncio.sleep(0.05)
        return False

    async def _is_ready(self) -> bool:
        if self.spec.ready is not None:
            return await asyncio.to_thread(self.spec.ready)
        return self.spec.ready_text is None or self._said_ready.is_set()

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    @property
    def exit_code(self) -> int | None:
        return self._process.returncode if self._process is not None else None

    async def wait(self) -> int:
        """The exit code, negative for a signal; the whole group is gone and all output has been handed on."""
        assert self._process is not None
        assert self._reader is not None
        code = await self._process.wait()
        self._signal_group(signal.SIGKILL)
        # A process that left the group may hold the output open for ever.
        await asyncio.wait({self._reader}, timeout=LAST_OUTPUT_S)
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)
        return code

    async def stop(self) -> None:
        """SIGTERM, and SIGKILL for the whole group after the grace. Returns when it is gone."""
        if self._process is None:
            return
        if self.is_running:
            self._quiet_until_s = math.inf if self.spec.is_quiet else 0.0
            if self.spec.stops_group:
                self._signal_group(signal.SIGTERM)
            else:
                self._process.terminate()
            try:
                async with asyncio.timeout(self.spec.stop_grace_s):
                    await self._process.wait()
            except TimeoutError:
                self._on_line(self.spec.name, f"did not stop within {self.spec.stop_grace_s:g} s; killed")
                self._signal_group(signal.SIGKILL)
        await self.wait()

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
            self._said_ready.set()
        if time.monotonic() >= self._quiet_until_s:
            self._on_line(self.spec.name, line)


async def _read_line(reader: asyncio.StreamReader) -> bytes:
    """b"" at the end. Of a line over the limit, what was buffered is gone and the rest comes as the next."""
    while True:
        try:
            return await reader.readline()
        except ValueError:
            continue


def _die_with(parent: int) -> None:
    """Runs in the child before its program. A parent that died in between is noticed by its pid."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)
