"""Log lines: short ones for `manage.py up`, which writes time and process before them, and JSON objects.

`JsonLines` is for collectors (MQADMIN_LOG_LINES=json), an object a line:

    {"time": "2026-01-31T09:30:00.123Z", "level": "WARNING", "logger": "mqadmin.redis", "pid": 4711, "message": "…"}

With "exception", a traceback as one text, where there is one. `manage.py up` adds "process" (supervision/log.py).
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime


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
