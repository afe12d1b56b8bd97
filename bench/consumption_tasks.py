"""A plain Celery task that does what the listeners of the benchmark `consumption` do: it takes a body of 1 KiB."""

from __future__ import annotations

import os

from celery import Celery

app = Celery("consumption", broker=os.environ.get("CELERY_BROKER_URL", "redis://"))
app.conf.update(task_ignore_result=True, broker_connection_retry_on_startup=True)


@app.task
def consume(body: str) -> None:
    """Takes a message."""
