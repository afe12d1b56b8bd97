"""A shared task that becomes a listener; it takes its worker along when its body says so, the first time."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from celery import shared_task

from tests.support.recording.lines import write_line


@shared_task(name="recording.work")
def work(*, body: str) -> None:
    killed = Path(os.environ["RECORDED"] + f".{body}")
    if body.startswith("kills") and not killed.exists():
        killed.touch()
        os.kill(os.getppid(), signal.SIGKILL)  # the worker's main process; the kernel ends this one
        signal.pause()
    write_line(f"tasks {os.getpid()} - - {body}\n")
