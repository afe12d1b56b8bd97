"""The fork server: a process that has loaded a program's modules once, and forks the program's processes on request.

A fork shares the memory of what is loaded and takes a hundredth of the time of a start. Its parent is who asks for it,
`manage.py up`, as if it had started it itself: the fork server forks twice, and the kernel hands the orphan over to who
asked, who is its subreaper for that long. So no process depends on the fork server, which may end at any time.

Linux only: elsewhere, and where what is loaded started threads (a fork has none of them), `CannotFork` is raised, and
the program is started anew.
"""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from mqadmin.supervision.parent_death import END_WITH_PARENT, set_subreaper

# A command and the variables that differ from the fork server's own: hundreds of bytes.
_MESSAGE_BYTES_MAX = 64 * 1024
READY_TEXT = "fork server ready"
# A fork takes milliseconds; a machine that is out of memory may take longer.
FORK_WITHIN_S = 10.0
# From the end of the process between until the kernel has handed its child over.
_HANDED_OVER_WITHIN_S = 5.0
_PENDING_MAX = 16
# What the forked process waits for, once its parent knows of it.
_GO = b"go"


def _is_supported() -> bool:
    """Tells whether this system has all that a fork server needs; asyncio asks for the second in the same way."""
    if sys.platform != "linux":
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return True


IS_SUPPORTED = _is_supported()


class CannotFork(Exception):
    """The fork server is away or forks nothing; the text says why."""


@dataclass(frozen=True)
class ForkRequest:
    """A process to be forked: `python -m` with these words, `environment` on top of the fork server's own variables.

    `stop_signal` is what it gets when its parent, the process `parent`, dies.
    """

    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    parent: int
    stop_signal: int


class ForkedProcess:
    """A child of this process that a fork server has forked; what asyncio's `Process` is to one that was started."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._ended = asyncio.Event()
        self._descriptor = os.pidfd_open(pid)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._descriptor, self._end)

    async def wait(self) -> int:
        """Waits for its end; returns the exit code, negative for a signal."""
        await self._ended.wait()
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            signal.pidfd_send_signal(self._descriptor, number)

    def _end(self) -> None:
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self._ended.set()


class ForkServer:
    """Asks the fork server at `path`, a unix socket, for processes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # Who is handed over to us must be whom we asked for.
        self._one_at_a_time = asyncio.Lock()

    async def fork(
        self, arguments: Sequence[str], environment: Mapping[str, str], output: int, stop: int
    ) -> ForkedProcess:
        """Returns a new child of this process, which prints to the descriptor `output`. Raises CannotFork."""
        request = ForkRequest(tuple(arguments), dict(environment), os.getpid(), stop)
        async with self._one_at_a_time:
            set_subreaper(is_on=True)
            asking = asyncio.create_task(self._ask(request, output), name="ask-for-fork")
            try:
                return await asyncio.shield(asking)
            except asyncio.CancelledError:
                # It may run by now, and nobody else knows of it.
                (process,) = await asyncio.gather(asking, return_exceptions=True)
                if isinstance(process, ForkedProcess):
                    process.send_signal(signal.SIGKILL)
                    await process.wait()
                raise
            finally:
                set_subreaper(is_on=False)

    async def _ask(self, request: ForkRequest, output: int) -> ForkedProcess:
        try:
            async with asyncio.timeout(FORK_WITHIN_S):
                return await self._forked(request, output)
        except TimeoutError as error:
            raise CannotFork(f"the fork server did not answer within {FORK_WITHIN_S:g} s") from error
        except OSError as error:
            raise CannotFork(f"the fork server is away ({error.strerror})") from error

    async def _forked(self, request: ForkRequest, output: int) -> ForkedProcess:
        loop = asyncio.get_running_loop()
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.setblocking(False)
            await loop.sock_connect(connection, os.fspath(self._path))
            socket.send_fds(connection, [json.dumps(asdict(request)).encode()], [output])
            answer = (await loop.sock_recv(connection, _MESSAGE_BYTES_MAX)).decode()
            if not answer.isdecimal():
                raise CannotFork(answer or "the forked process ended before it ran")
            process = ForkedProcess(int(answer))
            # Nothing waits between here and the return: whom it has told to run is known.
            connection.send(_GO)
            return process


def serve_forks(path: Path) -> ForkRequest:
    """Forks a process for each request to the socket at `path`. Returns in each of these processes, and only there."""
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(os.fspath(path))
        path.chmod(0o600)
        listener.listen(_PENDING_MAX)
        sys.stdout.write(f"{READY_TEXT}\n")
        sys.stdout.flush()
        while True:
            connection, _ = listener.accept()
            connection.settimeout(FORK_WITHIN_S)
            with connection:
                if (request := _serve(connection)) is not None:
                    return request


def _serve(connection: socket.socket) -> ForkRequest | None:
    """Answers one request; returns it in the process that was forked for it."""
    (_, asker, _) = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    descriptors: list[int] = []
    try:
        data, descriptors, _, _ = socket.recv_fds(connection, _MESSAGE_BYTES_MAX, 1)
        if asker != os.getuid() or len(descriptors) != 1 or _is_closed(connection):
            return None
        if (reason := _why_not()) is not None:
            connection.send(reason.encode())
            return None
        fields = json.loads(data)
        request = ForkRequest(tuple(fields.pop("arguments")), **fields)
        if not _fork_orphan():
            return None
        _become(request, descriptors[0], connection)
        return request
    except OSError:
        # Who asked is gone, or there is no room for a process: who asked hears that nothing was forked.
        return None
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _is_closed(connection: socket.socket) -> bool:
    """Tells whether who asked does not wait any more. What is forked for nobody would be left as a zombie of theirs."""
    # Nothing is sent after a request until it is answered.
    return bool(select.select([connection], [], [], 0)[0])


def _why_not() -> str | None:
    """Returns why nothing can be forked, or None."""
    started = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
    return f"what is loaded has started threads, which a fork would not have: {', '.join(started)}" if started else None


def _fork_orphan() -> bool:
    """Forks a process whose parent has ended; returns True in that process."""
    between = os.fork()
    if between != 0:
        os.waitpid(between, 0)
        return False
    if os.fork() != 0:
        os._exit(0)
    return True


def _become(request: ForkRequest, output: int, connection: socket.socket) -> None:
    """Makes this process what a child is that its parent has started: of its session, with its output and variables.

    It ends where its parent does not tell it to go on: nobody would know of it.
    """
    give_up_s = time.monotonic() + _HANDED_OVER_WITHIN_S
    while os.getppid() != request.parent:
        if time.monotonic() > give_up_s:
            os._exit(1)
        time.sleep(0.001)
    try:
        connection.send(str(os.getpid()).encode())
        is_known = connection.recv(len(_GO)) == _GO
    except OSError:
        is_known = False
    if not is_known:
        os._exit(1)
    os.setsid()
    for descriptor in (1, 2):
        os.dup2(output, descriptor)
    os.environ.update(request.environment)
    END_WITH_PARENT(request.parent, request.stop_signal)
