"""The project's settings with a clock that a test sets: for processes that have these as DJANGO_SETTINGS_MODULE.

What the console decides by time asks `timezone.now`. The file that CLOCK_FILE names says by how many seconds that is
ahead of the machine's clock; from there on it goes as time goes.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path

from django.utils import timezone

from mqadmin.settings import *  # noqa: F403

_FILE = Path(os.environ["CLOCK_FILE"])
_machines_now = timezone.now


def _now() -> datetime:
    return _machines_now() + timedelta(seconds=float(_FILE.read_text(encoding="ascii")))


timezone.now = _now

# The worker tells of each task that it has done.
LOGGING["loggers"]["celery.app.trace"] = {"level": "INFO"}  # noqa: F405
