"""A whole install as a user starts it: `manage.py up`, on free ports and in a folder of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

import psutil

from tests.support.children import Child, free_port
from tests.support.migrated import bring_migrated_database
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]
# On a new PostgreSQL database `up` was not there after 240 s once, beside three other suites.
READY_WITHIN_S = 600.0
STOPPED_WITHIN_S = 120.0
# Of a command. Migrating a new PostgreSQL database is the longest.
DONE_WITHIN_S = 240.0
_ADDRESS = re.compile(r"the console is at (http://\S+/)")
_PASSWORD = re.compile(r"with the password (\S+)")


def manage(environment: Mapping[str, str], *arguments: str) -> str:
    """Runs a management command with these variables beside the test's own; returns what it prints."""
    return _run(environment, "manage.py", *arguments)


def celery(environment: Mapping[str, str], *arguments: str) -> str:
    """Runs a command of Celery's, likewise."""
    return _run(environment, "-m", "celery", "-A", "mqadmin", *arguments)


def _run(environment: Mapping[str, str], *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=DONE_WITHIN_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


class Install:
    """Starts on entering, stops on leaving. `data` holds all its state; start it again with the same to resume.

    Its database has been migrated already, unless it `migrates` itself at its first start, as a user's does.
    """

    def __init__(self, data: Path, *arguments: str, env: dict[str, str] | None = None, migrates: bool = False) -> None:
        self.data = data
        self._migrates = migrates
        self._arguments = arguments
        self._env = env or {}
        self._child: Child | None = None
        self.web = f"http://127.0.0.1:{free_port()}/"
        self.broker = f"127.0.0.1:{free_port()}"
        self.namesrv = f"127.0.0.1:{free_port()}"
        self.seen: set[psutil.Process] = set()

    def __enter__(self) -> Install:
        try:
            return self.start()
        except BaseException:
            self.kill_hard()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def launch(self) -> Child:
        """Starts it without waiting; the log begins anew."""
        if self._child is not None:
            self._child.kill()
        if not self._migrates and not self.environment["DATABASE_URL"]:
            bring_migrated_database(self.data)
        port = self.broker.rpartition(":")[2]
        self.log = self.data.parent / f"{self.data.name}.up.log"
        self.log.unlink(missing_ok=True)
        self._child = Child(
            [sys.executable, "manage.py", "up", "--broker-port", port, *self._arguments],
            self.log,
            cwd=ROOT,
            env=self.environment,
        )
        return self._child

    @property
    def environment(self) -> dict[str, str]:
        """What differs from the test's own environment, for commands beside it."""
        return {
            "MQADMIN_DATA": str(self.data),
            "MQADMIN_WEB": self.web.removeprefix("http://").rstrip("/"),
            "MQADMIN_NAMESRV": self.namesrv,
            "DATABASE_URL": "",
            "REDIS_URL": "",
            "MQADMIN_APPS": "",
            "PYTHONUNBUFFERED": "1",
            **self._env,
        }

    def manage(self, *arguments: str) -> str:
        """Runs a management command beside it; returns what it prints."""
        return manage(self.environment, *arguments)

    def start(self) -> Install:
        """Returns when all children are ready."""
        child = self.launch()

        def is_ready() -> bool:
            if not child.is_running:
                raise AssertionError(f"up ended with {child.process.returncode}:\n{self.output()}")
            return _ADDRESS.search(self.output()) is not None

        wait_until(is_ready, READY_WITHIN_S, "up's line with the console's address")
        self.seen.update(self.processes())
        return self

    @property
    def password(self) -> str:
        """The admin's, printed at the first start."""
        found = _PASSWORD.search(self.output())
        assert found, f"no password in:\n{self.output()}"
        return found[1]

    @property
    def pid(self) -> int:
        assert self._child is not None
        return self._child.pid

    def output(self) -> str:
        return self._child.output() if self._child is not None else ""

    def processes(self) -> list[psutil.Process]:
        """`up` and all below it."""
        try:
            root = self._up()
            return [root, *root.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def _up(self) -> psutil.Process:
        """Raises psutil.NoSuchProcess when it has ended: another process may have its number by now."""
        if self._child is None or not self._child.is_running:
            raise psutil.NoSuchProcess(0)
        return psutil.Process(self.pid)

    def children(self, *words: str) -> list[psutil.Process]:
        """Direct children of `up` whose command line holds all `words`, e.g. "celery", "loops-1@%h"."""
        try:
            found = self._up().children()
        except psutil.NoSuchProcess:
            return []
        return [process for process in found if all(word in _command(process) for word in words)]

    def child(self, *words: str) -> psutil.Process:
        """The one direct child of `up` with these words."""
        (found,) = self.children(*words)
        return found

    def hosts(self, client_ids: set[str]) -> set[str]:
        """Which Celery workers run these members, e.g. {"loops-1"}: a member's id names the process it lives in."""
        pids = {int(client_id.partition("@")[2].partition("#")[0]) for client_id in client_ids}
        workers = {name: self.children(f"{name}@") for name in ("loops-1", "loops-2")}
        return {name for name, found in workers.items() for process in found if pids & _pids_below(process)}

    def left_behind(self) -> list[str]:
        """Processes of this install that still run: as seen, and by the data folder in their environment."""
        left = []
        for process in psutil.process_iter(["pid"]):
            try:
                ours = process in self.seen or process.environ().get("MQADMIN_DATA") == str(self.data)
                if ours and process.status() != psutil.STATUS_ZOMBIE:
                    left.append(f"{process.pid} {_command(process)[:160]}")
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
        return left

    def signal(self, number: int) -> None:
        self.seen.update(self.processes())
        assert self._child is not None
        self._child.process.send_signal(number)

    def wait(self, within_s: float = STOPPED_WITHIN_S) -> int:
        """The exit code of `up`."""
        assert self._child is not None
        return self._child.process.wait(within_s)

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        if self._child is None:
            return 0
        if self._child.is_running:
            self.signal(signal.SIGTERM)
        try:
            return self.wait()
        finally:
            self.kill_hard()

    def kill_hard(self) -> None:
        """Whatever is left, so that a failed test leaves nothing."""
        for process in self.processes()[1:]:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                pass
        if self._child is not None:
            self._child.kill()


def _pids_below(process: psutil.Process) -> set[int]:
    try:
        return {child.pid for child in process.children(recursive=True)}
    except psutil.NoSuchProcess:
        return set()


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return ""
