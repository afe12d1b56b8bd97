"""One process at a time works in the folders of history and reports; what a killed one left there is removed then.

The lock is the operating system's: it ends with the process that holds it, however that ends, so none is left over.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

if TYPE_CHECKING:
    from mqadmin.reports.history import History

_FILE = "reports.lock"
_POLL_S = 0.5


class Busy(Exception):
    """Another process appends to the history or makes reports."""


@contextmanager
def alone(data: Path, *, wait_s: float) -> Iterator[None]:
    """Holds the lock in the folder `data` until the block ends. Raises Busy when it is not free within `wait_s`."""
    data.mkdir(parents=True, exist_ok=True)
    give_up_at = time.monotonic() + wait_s
    with (data / _FILE).open("w") as file:
        while not _is_locked(file.fileno()):
            if time.monotonic() >= give_up_at:
                raise Busy(_("Another process appends to the history or makes reports; try again when it has ended."))
            time.sleep(_POLL_S)
        yield


def _is_locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def remove_drafts(history: History) -> int:
    """Removes drafts of files that an append did not finish; returns how many. Caller: who is `alone`.

    An append writes hours of the last week: what a killed one left lies in the latest days that there are.
    """
    found = [path for day in history.days()[-9:] for path in history.drafts(day)]
    for path in found:
        path.unlink(missing_ok=True)
    return len(found)


def clear_scratch(scratch: Path) -> None:
    """Removes what a killed Spark left in the folder that it spills to. Caller: who is `alone`."""
    if not scratch.is_dir():
        return
    for entry in list(os.scandir(scratch)):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)
        else:
            Path(entry.path).unlink(missing_ok=True)
