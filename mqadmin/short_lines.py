"""Log lines for a log that writes time and process before each of them: `manage.py up`'s."""

from __future__ import annotations

import logging


class ShortLines(logging.Formatter):
    """The message alone; from a warning on with its level before it, below INFO with the logger's name."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        if record.levelno < logging.INFO:
            return f"{record.name}: {record.message}"
        return f"{record.levelname}: {record.message}" if record.levelno > logging.INFO else record.message
