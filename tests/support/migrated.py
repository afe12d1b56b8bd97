"""A SQLite database with all migrations applied, made once per run: applying them takes seconds, copying it none.

Where an earlier run has left what the migrations make, only the hooks that follow them are run.
"""

from __future__ import annotations

import fcntl
import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.environment import SHARED_FOLDER
from tests.support.migrated_database import kept_copy

ROOT = Path(__file__).parents[2]
# As in mqadmin/settings.py.
FILE = "mqadmin.sqlite3"


def bring_migrated_database(data: Path) -> None:
    """Puts one into the data folder of an install, which it makes; one that has a database keeps it."""
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not (data / FILE).exists():
        shutil.copyfile(migrated_database(), data / FILE)


@functools.cache
def migrated_database() -> Path:
    """Returns a file in the data folder of the test run, which goes at its end; the first worker that asks makes it."""
    run = Path(os.environ.get(SHARED_FOLDER, os.environ["MQADMIN_DATA"]))
    folder = run / "install"
    with (run / "install.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "whole").exists():
            _migrate(folder)
            (folder / "whole").touch()
    return folder / FILE


def _migrate(folder: Path) -> None:
    env = {**os.environ, "MQADMIN_DATA": str(folder), "DATABASE_URL": "", "MQADMIN_APPS": "", "REDIS_URL": ""}
    folder.mkdir(mode=0o700, exist_ok=True)
    if kept := kept_copy():
        shutil.copyfile(kept, folder / FILE)
    command = [sys.executable, "manage.py", "migrate", "--verbosity", "0", "--skip-checks"]
    subprocess.run(command, cwd=ROOT, env=env, check=True)
    assert [path.name for path in folder.glob(f"{FILE}*")] == [FILE], "all of it is in one file"
