"""A private PostgreSQL on a unix socket: made for one test run, gone with it."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from urllib.parse import quote

import psycopg

from tests.support.children import Child
from tests.support.tools import require
from tests.support.waiting import wait_until

_DEBIAN = Path("/usr/lib/postgresql")
_USER = "postgres"
READY_WITHIN_S = 120.0


class PostgresServer:
    """Starts on entering, is gone on leaving with its folder. `url` as DATABASE_URL takes it.

    PostgreSQL refuses to run as root: there it runs as the system's user `postgres`, in a folder of its own.
    """

    def __init__(self) -> None:
        self._bin = _binaries()
        # Short: the path of a unix socket has at most 107 characters.
        self._folder = Path(tempfile.mkdtemp(prefix="mq-pg-"))
        self._child: Child | None = None
        self.url = f"postgres://{_USER}@{quote(str(self._folder), safe='')}/postgres"

    def __enter__(self) -> PostgresServer:
        try:
            self._start()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _start(self) -> None:
        data = self._folder / "data"
        if os.geteuid() == 0:
            user = pwd.getpwnam(_USER)
            os.chown(self._folder, user.pw_uid, user.pw_gid)
        initdb = [self._bin / "initdb", "-D", data, "-U", _USER, "-A", "trust", "--no-sync", "-E", "UTF8"]
        subprocess.run([*_as_postgres(), *map(str, initdb)], check=True, capture_output=True, cwd="/")
        self._data = data
        self.start()

    def start(self) -> None:
        """Starts the server; again after `stop`, on the same data."""
        # Nothing here outlives the test, so nothing has to reach the disk.
        settings = {"listen_addresses": "", "unix_socket_directories": str(self._folder), "fsync": "off"}
        # In the folder: a server that is killed leaves the system's own shared memory behind.
        settings["dynamic_shared_memory_type"] = "mmap"
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        command = [*_as_postgres(), str(self._bin / "postgres"), "-D", str(self._data), *options]
        self._child = Child(command, self._folder.with_suffix(".log"), cwd=Path("/"))
        wait_until(self._answers, READY_WITHIN_S, "an answer from PostgreSQL")

    def stop(self) -> None:
        """Kills the server: its clients lose their connections, and get no new ones."""
        assert self._child is not None, "it was not started"
        self._child.kill()

    def output(self) -> str:
        """What the server wrote so far."""
        assert self._child is not None, "it was not started"
        return self._child.output()

    def _end(self) -> None:
        if self._child is not None:
            self._child.stop()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.with_suffix(".log").unlink(missing_ok=True)

    def _answers(self) -> bool:
        try:
            psycopg.connect(host=str(self._folder), user=_USER, dbname="postgres").close()
        except psycopg.OperationalError:
            return False
        return True


def _binaries() -> Path:
    found = sorted(_DEBIAN.glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    on_path = shutil.which("initdb")
    folder = found[-1].parent if found else Path(on_path).parent if on_path else None
    require(folder, "a PostgreSQL server (Debian: apt install postgresql)")
    assert folder is not None
    return folder


def _as_postgres() -> list[str]:
    if os.geteuid() != 0:
        return []
    return ["setpriv", f"--reuid={_USER}", f"--regid={_USER}", "--clear-groups"]
