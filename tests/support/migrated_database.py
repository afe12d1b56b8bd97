"""The migrations of the test database, run once for all workers of a parallel run, and for all runs until one changes.

On SQLite the first process that migrates leaves a copy in pytest's cache; the others begin with the copy. Migrating
takes longer than the tests of most files, and all workers wait for it. What hooks write after migrations, as the roles
of people and the schedules of beat, is in no copy: each process writes it, by the code as it is.
"""

from __future__ import annotations

import fcntl
import re
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest.mock import patch

import django
from django.apps import apps
from django.conf import settings
from django.core.management.commands import migrate
from django.core.management.sql import emit_post_migrate_signal
from django.db import connection

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".pytest_cache" / "migrated"
# A copy has 2 MB; there are as many as branches that somebody goes to and fro between.
KEPT_COPIES_MAX = 4
# What a migration takes from a module: "from mqadmin.audit import chain, triggers".
_IMPORT = re.compile(r"^(?:from (\S+) import (.+)|import (\S+))$", re.MULTILINE)


@contextmanager
def migrated_once() -> Iterator[None]:
    """Makes Django's making of the test database take the copy, or make it."""
    if connection.vendor != "sqlite":
        yield
        return
    with patch.object(connection.creation, "create_test_db", _Copied().create_test_db):
        yield


class _Copied:
    def __init__(self) -> None:
        self._migrate = connection.creation.create_test_db

    def create_test_db(self, verbosity: int = 1, **options: Any) -> str:
        FOLDER.mkdir(parents=True, exist_ok=True)
        copy = _path_of_copy()
        with (FOLDER / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if copy.exists():
                return _from_copy(copy)

            def keep_before_hooks(*given: Any, **named: Any) -> None:
                _keep(copy)
                emit_post_migrate_signal(*given, **named)

            with patch.object(migrate, "emit_post_migrate_signal", keep_before_hooks):
                return self._migrate(verbosity=verbosity, **options)


def kept_copy() -> Path | None:
    """Returns a database that all migrations made and no hook has written to.

    None where no run has left one, and in a process without apps, as a benchmark's, which knows of no migrations.
    """
    if not apps.ready:
        return None
    copy = _path_of_copy()
    return copy if copy.exists() else None


def _path_of_copy() -> Path:
    return FOLDER / f"{_digest_of_migrations()}.sqlite3"


def _digest_of_migrations() -> str:
    """Returns a digest of all migrations, of modules of ours that they import, and of what runs them."""
    files = {path for app in apps.get_app_configs() for path in Path(app.path).glob("migrations/*.py")}
    files |= {path for file in files for path in imported_modules(file.read_text(encoding="utf-8"))}
    digest = sha256(repr((sys.version, sqlite3.sqlite_version, django.VERSION)).encode())
    for path in sorted(files):
        digest.update(f"\n{path}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def imported_modules(source: str) -> Iterator[Path]:
    """Returns the files of ours that a module imports by lines of their own."""
    for package, names, module in _IMPORT.findall(source):
        for dotted in (module or package, *(f"{package}.{name.strip()}" for name in names.split(","))):
            path = ROOT / f"{dotted.replace('.', '/')}.py"
            if path.is_file():
                yield path


def _keep(copy: Path) -> None:
    """Writes the migrated database; the copies that were made first go."""
    unfinished = copy.with_suffix(".unfinished")
    unfinished.unlink(missing_ok=True)
    with closing(sqlite3.connect(unfinished)) as written:
        connection.connection.backup(written)
    unfinished.rename(copy)
    newest_first = sorted(FOLDER.glob("*.sqlite3"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in newest_first[KEPT_COPIES_MAX:]:
        path.unlink()


def _from_copy(path: Path) -> str:
    """Does what Django does before it migrates and after, and copies instead."""
    connection.close()
    name = connection.creation._get_test_db_name()
    settings.DATABASES[connection.alias]["NAME"] = connection.settings_dict["NAME"] = name
    connection.ensure_connection()
    with closing(sqlite3.connect(path)) as copy:
        copy.backup(connection.connection)
    emit_post_migrate_signal(verbosity=0, interactive=False, db=connection.alias)
    return str(name)
