"""Log lines: short ones for `manage.py up`, which writes time and process before them, JSON objects, and their handler.

`JsonLines` is for collectors (MQADMIN_LOG_LINES=json), an object a line:

    {"time": "2026-01-31T09:30:00.123Z", "level": "WARNING", "logger": "mqadmin.redis", "pid": 4711, "message": "…"}

With "exception", a traceback as one text, where there is one. `manage.py up` adds "process" (supervision/log.py).
"""

from __future__ import annotations

import json
import logging
import os
from datetime import UTC, datetime
from typing import TextIO


class ForkSafeStreamHandler(logging.StreamHandler[TextIO]):
    """Has a fork wait for the line that another thread is writing.

    In a process that was forked meanwhile the stream's own lock would be held for good, by a thread that is not there:
    its first line would wait for ever. A Celery worker forks processes of its pool while its threads write lines.
    `logging` makes the handler's lock anew in the child, but not the stream's.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        super().__init__(stream)
        os.register_at_fork(before=self.acquire, after_in_parent=self.release)


class ShortLines(logging.Formatter):
    """The message alone; from a warning on with its level before it, below INFO with the logger's name."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        if record.levelno < logging.INFO:
            return f"{record.name}: {record.message}"
        return f"{record.levelname}: {record.message}" if record.levelno > logging.INFO else record.message


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "time": iso(datetime.fromtimestamp(record.created, UTC)),
            "level": record.levelname,
            "logger": record.name,
            "pid": record.process,
            "message": record.getMessage(),
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        # Escaped to ASCII: a name with a line separator or a terminal's control character stays one harmless line.
        return json.dumps(entry)


def iso(moment: datetime) -> str:
    """Returns `moment`, which is in UTC, with milliseconds and Z."""
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"
