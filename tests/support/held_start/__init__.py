"""A Django app that holds each process of a Celery worker's pool, before it takes work, until it may go on.

The process writes a file with its pid as name into the folder HELD_START, and goes on when the file `go` is there.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from celery.signals import worker_process_init

from tests.support.waiting import wait_until


def held(folder: Path) -> set[int]:
    """Returns the pids of the processes that have come here."""
    return {int(file.name) for file in folder.iterdir() if file.name.isdigit()}


def let_go(folder: Path) -> None:
    (folder / "go").touch()


# Connected when Django loads its apps, so before the receivers in Celery's task modules.
@worker_process_init.connect
def hold(**_: Any) -> None:
    folder = Path(os.environ["HELD_START"])
    (folder / str(os.getpid())).touch()
    wait_until((folder / "go").exists, what="leave to go on")
