"""The migrations of the test database, run once for all workers of a parallel run.

On SQLite the first worker migrates and leaves a copy in the folder that they share; the others begin with the copy.
Migrating takes more than a second, and there are as many workers as cores and one.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from django.conf import settings
from django.db import connection

from tests.support.environment import SHARED_FOLDER


@contextmanager
def migrated_once() -> Iterator[None]:
    """Makes Django's making of the test database take the copy, or make it."""
    folder = os.environ.get(SHARED_FOLDER)
    if folder is None or connection.vendor != "sqlite":
        yield
        return
    with patch.object(connection.creation, "create_test_db", _Copied(Path(folder)).create_test_db):
        yield


class _Copied:
    def __init__(self, folder: Path) -> None:
        self._copy = folder / "migrated.sqlite3"
        self._lock = folder / "migrated.lock"
        self._migrate = connection.creation.create_test_db

    def create_test_db(self, verbosity: int = 1, **options: Any) -> str:
        with self._lock.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self._copy.exists():
                return _from_copy(self._copy)
            name = self._migrate(verbosity=verbosity, **options)
            with closing(sqlite3.connect(self._copy)) as copy:
                connection.connection.backup(copy)
            return name


def _from_copy(path: Path) -> str:
    """Does what Django does before it migrates, and copies instead."""
    connection.close()
    name = connection.creation._get_test_db_name()
    settings.DATABASES[connection.alias]["NAME"] = connection.settings_dict["NAME"] = name
    connection.ensure_connection()
    with closing(sqlite3.connect(path)) as copy:
        copy.backup(connection.connection)
    return str(name)
