"""The project's Celery application with the short limits of tests for replays: `celery -A tests.support.quick_replays`.

What a killed worker leaves is then settled within seconds.
"""

from __future__ import annotations

from functools import partial

import django

from mqadmin.celery import app

django.setup()

from mqadmin.replays import tasks  # noqa: E402 - models exist only now
from mqadmin.replays.driving import drive_step  # noqa: E402
from tests.support.replay_process import LIMITS  # noqa: E402

__all__ = ["app"]

tasks.drive_step = partial(drive_step, limits=LIMITS)  # type: ignore[assignment]
