"""The fork server with small real programs: whose children they are, what they have, and what happens without it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from mqadmin.supervision import fork_server
from mqadmin.supervision.child import PYTHON_MODULE, Child, ChildSpec
from mqadmin.supervision.fork_server import READY_TEXT, CannotFork, ForkServer
from mqadmin.supervision.supervisor import Supervisor
from tests.support.fork_servers import takes_connections
from tests.support.lines import Lines
from tests.support.waiting import eventually

ROOT = Path(__file__).resolve().parents[3]
SERVER = """
import runpy, sys
from pathlib import Path
from mqadmin.supervision.fork_server import serve_forks
import heavy
request = serve_forks(Path(sys.argv[1]))
sys.argv = list(request.arguments)
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""
# Says who it is, and ends when it is told to: by a signal, or by the code that is its second word.
PROGRAM = """
import os, signal, sys, time
print("heavy" in sys.modules, sys.argv[1:], os.environ.get("WORD"), os.getppid(), os.getsid(0) == os.getpid())
print("ready", flush=True)
if sys.argv[2:]:
    sys.exit(int(sys.argv[2]))
time.sleep(600)
"""
METER = """
import threading, time
threading.Thread(target=time.sleep, args=(600,), name="meter", daemon=True).start()
"""

pytestmark = pytest.mark.skipif(not fork_server.IS_SUPPORTED, reason="the fork server needs Linux")


class Programs:
    """A folder with the modules `server`, `heavy` and `program`; specs of the first and the last."""

    def __init__(self, folder: Path, heavy: str = "") -> None:
        self.socket = folder / "fork.sock"
        for name, code in (("server", SERVER), ("heavy", heavy), ("program", PROGRAM)):
            (folder / f"{name}.py").write_text(code)
        self._path = {"PYTHONPATH": os.pathsep.join((str(folder), str(ROOT)))}
        self.server = ChildSpec(
            "fork-server",
            (*PYTHON_MODULE, "server", str(self.socket)),
            ready_text=READY_TEXT,
            ready_timeout_s=120.0,
            is_quiet=True,
            environment=self._path,
        )

    def program(self, *words: str, name: str = "program") -> ChildSpec:
        return ChildSpec(
            name,
            (*PYTHON_MODULE, "program", "word", *words),
            ready_text="ready",
            ready_timeout_s=120.0,
            is_forked=True,
            environment={**self._path, "WORD": "of the request"},
        )


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    return Programs(tmp_path)


@pytest.fixture
async def server(programs: Programs) -> AsyncIterator[Child]:
    child = Child(programs.server, lambda *_: None)
    await child.start()
    assert await child.wait_ready(), child.last_lines
    yield child
    await child.stop()


def children() -> set[int]:
    """The children of this process, of which other tests may have some."""
    return {process.pid for process in psutil.Process().children()}


async def started(spec: ChildSpec, socket: Path, lines: Lines) -> Child:
    child = Child(spec, lines, fork_server=ForkServer(socket))
    await child.start()
    assert await child.wait_ready(), child.last_lines
    return child


async def test_a_forked_process_is_a_child_with_a_session_output_and_variables_of_its_own(
    programs: Programs, server: Child
) -> None:
    lines = Lines()
    child = await started(programs.program(), programs.socket, lines)
    assert lines.of("program") == [f"True ['word'] of the request {os.getpid()} True", "ready"]
    assert psutil.Process(child.pid).ppid() == os.getpid()
    assert psutil.Process(server.pid).children() == []
    await child.stop()
    assert child.exit_code == -signal.SIGTERM
    assert not psutil.pid_exists(child.pid)


async def test_the_exit_code_is_the_programs(programs: Programs, server: Child) -> None:
    child = Child(programs.program("7"), Lines(), fork_server=ForkServer(programs.socket))
    await child.start()
    assert await child.wait() == 7


async def test_a_forked_process_does_not_end_with_the_fork_server(programs: Programs, server: Child) -> None:
    child = await started(programs.program(), programs.socket, Lines())
    os.kill(server.pid, signal.SIGKILL)
    await server.wait()
    assert child.is_running
    assert psutil.Process(child.pid).ppid() == os.getpid()
    await child.stop()


@pytest.mark.slow
async def test_programs_are_started_anew_while_the_fork_server_is_away_and_forked_when_it_is_back(
    programs: Programs,
) -> None:
    lines = Lines()
    supervisor = Supervisor(
        [[programs.server], [programs.program(name="a"), programs.program(name="b")]],
        [],
        lines,
        restart_pause_min_s=0.05,
        fork_server=ForkServer(programs.socket),
    )
    await supervisor.start()
    try:
        assert [lines.of(name)[0].split()[0] for name in "ab"] == ["True", "True"]
        os.kill(supervisor.pids()["fork-server"], signal.SIGSTOP)
        programs.socket.unlink()
        os.kill(supervisor.pids()["a"], signal.SIGKILL)
        await eventually(lambda: lines.of("a").count("ready") == 2)
        assert "takes longer to start: the fork server is away (No such file or directory)" in lines.of("a")
        os.kill(supervisor.pids()["fork-server"], signal.SIGKILL)
        await eventually(lambda: takes_connections(programs.socket))
        os.kill(supervisor.pids()["b"], signal.SIGKILL)
        await eventually(lambda: lines.of("b").count("ready") == 2)
        heavies = [text.split()[0] for name in "ab" for text in lines.of(name) if "word" in text]
        assert heavies == ["True", "False", "True", "True"]
    finally:
        await supervisor.stop()
    assert supervisor.pids() == {}


async def test_nothing_is_forked_where_what_is_loaded_started_a_thread(tmp_path: Path) -> None:
    programs = Programs(tmp_path, heavy=METER)
    server = Child(programs.server, lambda *_: None)
    await server.start()
    assert await server.wait_ready(), server.last_lines
    lines = Lines()
    child = await started(programs.program(), programs.socket, lines)
    await child.stop()
    await server.stop()
    first, second, *_ = lines.of("program")
    assert first.startswith("takes longer to start: what is loaded has started threads")
    assert first.endswith(": meter")
    assert second.startswith("False")


async def test_a_fork_server_that_does_not_answer_is_waited_for_only_so_long(
    programs: Programs, server: Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = children()
    with monkeypatch.context() as patch:
        patch.setattr(fork_server, "FORK_WITHIN_S", 0.1)
        os.kill(server.pid, signal.SIGSTOP)
        try:
            with pytest.raises(CannotFork, match=r"did not answer within 0\.1 s"):
                await ForkServer(programs.socket).fork(("program", "word"), {}, sys.stdout.fileno(), signal.SIGTERM)
        finally:
            os.kill(server.pid, signal.SIGCONT)
    child = await started(programs.program(), programs.socket, Lines())
    assert children() == before | {child.pid}, "what was asked for in vain does not run"
    await child.stop()


@pytest.mark.parametrize("turns", [1, 3, 30])
async def test_a_start_that_is_broken_off_leaves_no_process(programs: Programs, server: Child, turns: int) -> None:
    """Before it has asked, or while it waits for the answer."""
    before = children()
    os.kill(server.pid, signal.SIGSTOP)
    child = Child(programs.program(), Lines(), fork_server=ForkServer(programs.socket))
    starting = asyncio.create_task(child.start())
    for _ in range(turns):
        await asyncio.sleep(0)
    starting.cancel()
    os.kill(server.pid, signal.SIGCONT)
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert children() == before
    assert not child.is_running
