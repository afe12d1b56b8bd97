"""Keeps what a Celery worker has loaded in memory once, for its main process and all processes of a prefork pool."""

from __future__ import annotations

import gc
from typing import Any


def keep_memory_shared(**_: Any) -> None:
    """Receives `worker_before_create_process`: in the main process, before each fork. What is loaded by now is shared.

    Else every collection of garbage, Celery's own before each fork first of all, would write to the head of each
    object, and so copy the memory of the whole program once for each child.
    """
    gc.collect()
    gc.freeze()
