"""The supervisor with small real processes: order, readiness, restart, stop, and a parent that is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import psutil
import pytest

from mqadmin.supervision import child as child_module
from mqadmin.supervision import parent_death
from mqadmin.supervision.child import Child, ChildSpec
from mqadmin.supervision.supervisor import StartFailed, Supervisor
from tests.support.lines import Lines
from tests.support.waiting import eventually, wait_until

STAYS = "import time; print('ready', flush=True); time.sleep(600)"
IGNORES_TERM = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(600)"
)


def spec(name: str, code: str = STAYS, **kwargs: object) -> ChildSpec:
    arguments = {"ready_text": "ready", "ready_timeout_s": 120.0, **kwargs}
    return ChildSpec(name, (sys.executable, "-c", code), **arguments)  # type: ignore[arg-type]


def is_alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status != "Z"


async def test_supervisor_starts_in_order_and_stops_in_the_stated_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_module, "LAST_OUTPUT_S", 60.0)
    lines = Lines()
    code = textwrap.dedent(
        """
        import signal, sys, time
        signal.signal(signal.SIGTERM, lambda *_: (print('bye', flush=True), sys.exit(0)))
        print('ready', flush=True)
        time.sleep(600)
        """
    )
    supervisor = Supervisor([[spec("a", code)], [spec("b", code)], [spec("c", code)]], [["b"], ["c"]], lines)
    await supervisor.start()
    assert [name for name, text in lines.said if text == "ready"] == ["a", "b", "c"]
    await supervisor.stop()
    assert [name for name, text in lines.said if text == "bye"] == ["b", "c", "a"]
    assert supervisor.pids() == {}


@pytest.mark.slow
async def test_supervisor_stops_the_children_of_a_stage_together(tmp_path: Path) -> None:
    """Each of them ends only when all have got their signal."""
    code = textwrap.dedent(
        f"""
        import os, pathlib, signal, sys, time
        folder = pathlib.Path({str(tmp_path)!r})
        def stop(*_):
            (folder / str(os.getpid())).touch()
            while len(list(folder.iterdir())) < 4:
                time.sleep(0.01)
            sys.exit(0)
        signal.signal(signal.SIGTERM, stop)
        print('ready', flush=True)
        time.sleep(600)
        """
    )
    lines = Lines()
    names = [f"worker-{number}" for number in range(4)]
    supervisor = Supervisor([[spec(name, code, stop_grace_s=60.0) for name in names]], [names], lines)
    await supervisor.start()
    await supervisor.stop()
    assert supervisor.pids() == {}
    assert not any(lines.has(name, "killed") for name in names)


@pytest.mark.slow
async def test_a_quiet_child_is_heard_only_while_it_is_at_work() -> None:
    lines = Lines()
    code = textwrap.dedent(
        """
        import signal, sys, time
        signal.signal(signal.SIGTERM, lambda *_: (print('bye', flush=True), sys.exit(0)))
        print('hello', flush=True)
        print('ready', flush=True)
        while True:
            time.sleep(1)
            print('at work', flush=True)
        """
    )
    supervisor = Supervisor([[spec("redis", code, is_quiet=True)]], [], lines)
    await supervisor.start()
    await eventually(lambda: lines.has("redis", "at work"))
    await supervisor.stop()
    assert set(lines.said) == {("redis", "at work")}


async def test_supervisor_says_why_a_child_did_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_module, "LAST_OUTPUT_S", 60.0)
    supervisor = Supervisor([[spec("broker", "print('port 1 is taken'); raise SystemExit(3)")]], [], Lines())
    with pytest.raises(StartFailed, match=r"broker ended \(exit code 3\)[\s\S]*port 1 is taken"):
        await supervisor.start()
    await supervisor.stop()


async def test_supervisor_says_that_a_program_cannot_be_run() -> None:
    supervisor = Supervisor([[ChildSpec("x", ("/nowhere/to/be/found",))]], [], Lines())
    with pytest.raises(StartFailed, match="cannot be run"):
        await supervisor.start()
    await supervisor.stop()


@pytest.mark.slow
async def test_supervisor_gives_up_on_a_child_that_is_never_ready() -> None:
    supervisor = Supervisor([[spec("silent", "import time; time.sleep(600)", ready_timeout_s=0.5)]], [], Lines())
    with pytest.raises(StartFailed, match=r"not ready within 0\.5 s"):
        await supervisor.start()
    await supervisor.stop()
    assert supervisor.pids() == {}


async def test_supervisor_restarts_a_child_that_is_killed() -> None:
    lines = Lines()
    supervisor = Supervisor([[spec("a")]], [], lines, restart_pause_min_s=0.05)
    await supervisor.start()
    first = supervisor.pids()["a"]
    os.kill(first, signal.SIGKILL)
    await eventually(lambda: supervisor.pids().get("a") not in (None, first))
    assert lines.has("a", "ended (signal 9); starting again")
    await supervisor.stop()


async def test_child_is_killed_when_it_ignores_sigterm_beyond_its_grace() -> None:
    lines = Lines()
    child = Child(spec("deaf", IGNORES_TERM, stop_grace_s=0.3), lines)
    await child.start()
    assert await child.wait_ready()
    pid = child.pid
    await child.stop()
    assert not is_alive(pid)
    assert lines.has("deaf", "did not stop within 0.3 s; killed")


async def test_child_takes_its_own_children_along() -> None:
    popen = f"p = subprocess.Popen([sys.executable, '-c', {STAYS!r}])"
    code = f"import subprocess, sys; {popen}; print('ready', p.pid, flush=True); p.wait()"
    lines = Lines()
    child = Child(spec("family", code), lines)
    await child.start()
    assert await child.wait_ready()
    grandchild = int(next(text for _, text in lines.said if text.startswith("ready ")).split()[1])
    os.kill(child.pid, signal.SIGKILL)
    await child.wait()
    await eventually(lambda: not is_alive(grandchild))


async def test_child_survives_a_line_over_the_limit() -> None:
    lines = Lines()
    child = Child(spec("loud", "print('x' * 300_000); print('ready', flush=True); import time; time.sleep(600)"), lines)
    await child.start()
    assert await child.wait_ready()
    await child.stop()


@pytest.mark.parametrize("way", ["ask_kernel", "start_watcher"])
@pytest.mark.slow
def test_children_end_when_their_parent_is_killed(tmp_path: Path, way: str) -> None:
    pids = tmp_path / "pids"
    parent = subprocess.Popen(
        [
            sys.executable,
            "-c",
            textwrap.dedent(
                f"""
                import asyncio, pathlib, sys
                from mqadmin.supervision import parent_death
                from mqadmin.supervision.child import ChildSpec
                from mqadmin.supervision.supervisor import Supervisor
                async def main():
                    specs = [ChildSpec(n, (sys.executable, "-c", {STAYS!r}), ready_text="ready") for n in "ab"]
                    supervisor = Supervisor([specs], [], lambda *_: None, end_with_parent=parent_death.{way})
                    await supervisor.start()
                    pathlib.Path({str(pids)!r}).write_text(" ".join(map(str, supervisor.pids().values())))
                    await asyncio.sleep(600)
                asyncio.run(main())
                """
            ),
        ],
        cwd=Path(__file__).resolve().parents[3],
    )
    try:
        wait_until(lambda: pids.exists() and len(pids.read_text().split()) == 2)
        children = [int(pid) for pid in pids.read_text().split()]
        assert all(is_alive(pid) for pid in children)
    finally:
        parent.kill()
        parent.wait()
    wait_until(lambda: not any(is_alive(pid) for pid in children))


async def test_a_watcher_ends_with_its_child() -> None:
    child = Child(spec("watched"), Lines(), end_with_parent=parent_death.start_watcher)
    await child.start()
    assert await child.wait_ready()
    (watcher,) = psutil.Process(child.pid).children()
    await child.stop()
    await eventually(lambda: not is_alive(watcher.pid))
