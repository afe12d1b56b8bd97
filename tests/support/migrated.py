"""A SQLite database with all migrations applied, made once per worker: applying them takes seconds, copying it none."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

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
    """Returns a file in the data folder of the test run, which goes at its end."""
    folder = Path(os.environ["MQADMIN_DATA"]) / "migrated"
    env = {**os.environ, "MQADMIN_DATA": str(folder), "DATABASE_URL": "", "MQADMIN_APPS": "", "REDIS_URL": ""}
    command = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    subprocess.run(command, cwd=ROOT, env=env, check=True)
    assert [path.name for path in folder.glob(f"{FILE}*")] == [FILE], "all of it is in one file"
    return folder / FILE
