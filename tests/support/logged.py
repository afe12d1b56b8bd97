"""What one logger wrote during a test: others write meanwhile, some of them from threads that an earlier test left."""

from __future__ import annotations

import logging

import pytest


def records_of(caplog: pytest.LogCaptureFixture, name: str, level: int = logging.NOTSET) -> list[logging.LogRecord]:
    """Returns the records of the logger and of those below it, of this level at least."""
    own = (record for record in caplog.records if f"{record.name}.".startswith(f"{name}."))
    return [record for record in own if record.levelno >= level]


def lines_of(caplog: pytest.LogCaptureFixture, name: str, level: int = logging.NOTSET) -> list[str]:
    """Returns what those records say."""
    return [record.getMessage() for record in records_of(caplog, name, level)]
