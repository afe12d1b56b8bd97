"""`manage.py up` as a user starts and ends it: all comes up, and nothing is left, whichever way it ends."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import psutil
import pytest

from bench.install import MEMORY_BAR_MB
from tests.support.asking import has_route
from tests.support.broker_probe import BrokerProbe
from tests.support.install import READY_WITHIN_S, ROOT, Install, celery
from tests.support.redis_server import SOCKET_NAME
from tests.support.tools import require
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.redis, pytest.mark.timeout(1800)]

ROLES = (
    SOCKET_NAME,
    "runbroker",
    "mqadmin.web",
    "scheduler@",
    "loops-1@",
    "loops-2@",
    "following@",
    "jobs@",
    " beat ",
)
# For how long the memory of an idle install is looked at.
LOOKED_AT_S = 10.0


@pytest.fixture(autouse=True)
def _on_linux() -> None:
    require(os.path.isdir("/proc"), "the supervisor's guarantees need Linux")


def nothing_is_left(install: Install) -> bool:
    return not install.left_behind() and not (install.data / "redis.sock").exists() and not ports_open(install)


def ports_open(install: Install) -> list[str]:
    addresses = [install.web.removeprefix("http://").rstrip("/"), install.broker, install.namesrv]
    return [address for address in addresses if is_listening(address)]


def is_listening(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((host, int(port))) == 0


def test_up_starts_everything_within_its_memory_and_sigterm_leaves_nothing_behind(tmp_path: Path) -> None:
    with Install(tmp_path / "data", migrates=True, env={"MQADMIN_APPS": "examples.shop"}) as install:

        def missing() -> list[str]:
            commands = [" ".join(process.cmdline()) for process in install.children()]
            return [role for role in ROLES if not any(role in command for command in commands)]

        # A process takes its name a moment after it was started.
        wait_until(lambda: not missing(), what=lambda: f"{missing()}")
        assert has_route(install.namesrv)
        with urllib.request.urlopen(install.web + "healthz") as answer:
            assert answer.status == 200
        assert len(install.password) >= 12
        assert stat_mode(install.data) == 0o700
        let_it_settle(install)
        taken = most_memory_mb(install)
        print(f"\nidle: {sum(taken.values()):.0f} MB {taken}")
        assert sum(taken.values()) <= MEMORY_BAR_MB, taken
        assert install.stop() == 0
        assert nothing_is_left(install), (install.left_behind(), ports_open(install))
        stopping = install.output().partition("stopping")[2]
        assert "killed" not in stopping
        assert "Traceback" not in stopping


def stat_mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def let_it_settle(install: Install) -> None:
    """Returns when the example's four consumer instances run, and the worker of reports has been at work, if any."""
    probe = BrokerProbe(install.broker)
    wait_until(lambda: len(probe.members("billing")) == len(probe.members("mailing")) == 2, what="four instances")
    if install.children("reports@"):
        celery(install.environment, "call", "mqadmin.reports.tasks.append_history")
        # Whoever appends makes it first.
        wait_until((install.data / "reports.lock").exists, what="the worker of reports appends to the history")


def most_memory_mb(install: Install) -> dict[str, float]:
    """Returns what the processes took when they took most: a process of the worker of reports that appends, too."""
    found = memory_mb(install)
    looked_until_s = time.monotonic() + LOOKED_AT_S
    while time.monotonic() < looked_until_s:
        time.sleep(1)
        found = max(found, memory_mb(install), key=lambda one: sum(one.values()))
    return found


def memory_mb(install: Install) -> dict[str, float]:
    """Returns what the machine gives to `up` and to each child with all below it; shared pages are shared out (PSS)."""
    found = {"up": pss_mb(psutil.Process(install.pid))}
    for child in install.children():
        command = " ".join(child.cmdline())
        name = next((role for role in (*ROLES, "reports@") if role in command), command)
        found[name] = sum(map(pss_mb, [child, *child.children(recursive=True)]))
    return found


def pss_mb(process: psutil.Process) -> float:
    try:
        return float(process.memory_full_info().pss) / 1e6
    except psutil.NoSuchProcess:
        return 0.0


def test_up_ended_by_ctrl_c_and_by_a_kill_leaves_nothing_behind_and_says_the_password_only_once(tmp_path: Path) -> None:
    with Install(tmp_path / "data") as install:
        install.signal(signal.SIGINT)
        assert install.wait() == 0
        assert nothing_is_left(install), (install.left_behind(), ports_open(install))
        password = install.password
        install.start()
        assert password not in install.output()
        assert "with the password" not in install.output()
        install.signal(signal.SIGKILL)

        def is_gone() -> bool:
            # The kernel may send its signal once per thread of the parent, and by a second SIGINT Redis ends without
            # removing its socket; the next one removes it.
            return not install.left_behind() and not ports_open(install)

        wait_until(is_gone, what="all gone after kill -9 of the parent")
        install.start()
        assert has_route(install.namesrv)


def is_pythons_own_end(output: str) -> bool:
    """On a busy machine 0.3 s may fall before the first line of `main`, where only Python itself can answer Ctrl-C."""
    files = re.findall(r'^ *File "(.+?)"', output, re.MULTILINE)
    return "KeyboardInterrupt" in output and not any(map(is_ours, files))


def is_ours(file: str) -> bool:
    path = Path(file)
    return path.is_relative_to(ROOT) and path != ROOT / "manage.py" and not path.is_relative_to(Path(sys.prefix))


@pytest.mark.parametrize("after_s", [0.3, 0.7, 1.1, 1.5, 2.5])
def test_ctrl_c_while_it_starts_ends_it_and_leaves_nothing_behind(tmp_path: Path, after_s: float) -> None:
    """Wherever the start is by then: among imports, migrating, or with some children already running."""
    install = Install(tmp_path / "data", "--demo", migrates=True)
    child = install.launch()
    with pytest.raises(subprocess.TimeoutExpired):
        child.process.wait(after_s)
    try:
        install.signal(signal.SIGINT)
        code = install.wait()
        assert nothing_is_left(install), (install.left_behind(), ports_open(install))
        if not is_pythons_own_end(install.output()):
            assert code in (0, -signal.SIGINT)
            assert "Traceback" not in install.output()
    finally:
        install.kill_hard()


def test_up_restarts_a_child_that_dies_and_refuses_a_second_up_on_the_same_folder(tmp_path: Path) -> None:
    with Install(tmp_path / "data", env={"MQADMIN_INSTANCES": "1"}) as install:
        for role in (SOCKET_NAME, "runbroker", "mqadmin.web"):
            kill_and_see_it_come_back(install, role)
        wait_until(lambda: has_route(install.namesrv))
        assert len(re.findall(r"ended \(signal 9\); starting again", install.output())) == 3

        second = Install(install.data)
        child = second.launch()
        assert child.process.wait(READY_WITHIN_S) != 0
        assert "another `manage.py up` runs on" in second.output()
        assert "Traceback" not in second.output()


def kill_and_see_it_come_back(install: Install, role: str) -> None:
    (first,) = install.children(role)
    first.kill()

    def is_back() -> bool:
        return any(process.pid != first.pid for process in install.children(role))

    wait_until(is_back, what=f"{role} started again")
    assert psutil.pid_exists(install.pid)


def test_up_starts_nothing_of_a_project_that_djangos_checks_refuse(tmp_path: Path) -> None:
    install = Install(tmp_path / "data", env={"MQADMIN_APPS": "tests.support.unsound_app"})
    child = install.launch()
    assert child.process.wait(READY_WITHIN_S) not in (0, None)
    assert "(unsound.E001) this app is never right" in child.output()
    assert "leave it out" in child.output()
    assert "broker" not in child.output()


@pytest.mark.parametrize("taken", ["web", "broker", "namesrv"])
def test_up_names_a_taken_port_and_the_remedy(tmp_path: Path, taken: str) -> None:
    install = Install(tmp_path / "data")
    host, _, port = getattr(install, taken).removeprefix("http://").rstrip("/").rpartition(":")
    with socket.socket() as holder:
        holder.bind((host, int(port)))
        holder.listen()
        child = install.launch()
        assert child.process.wait(READY_WITHIN_S) not in (0, None)
        assert port in install.output()
        assert "another" in install.output()
        assert "Traceback" not in install.output()
        assert not install.left_behind()


def test_up_says_what_to_do_when_no_redis_is_to_be_had(tmp_path: Path) -> None:
    install = Install(tmp_path / ("x" * 120))
    child = install.launch()
    assert child.process.wait(READY_WITHIN_S) not in (0, None)
    assert "set MQADMIN_DATA to a folder with a shorter path" in install.output()
    assert "Traceback" not in install.output()
