from __future__ import annotations

import logging
import sys

import pytest

from mqadmin.short_lines import ShortLines


def record(level: int, error: BaseException | None = None) -> logging.LogRecord:
    exc_info = (type(error), error, error.__traceback__) if error is not None else None
    return logging.LogRecord("mqadmin.lag", level, __file__, 1, "lag is %d", (7,), exc_info)


@pytest.mark.parametrize(
    ("level", "line"),
    [
        (logging.DEBUG, "mqadmin.lag: lag is 7"),
        (logging.INFO, "lag is 7"),
        (logging.WARNING, "WARNING: lag is 7"),
        (logging.ERROR, "ERROR: lag is 7"),
    ],
)
def test_a_short_line_says_the_level_when_it_matters(level: int, line: str) -> None:
    assert ShortLines().format(record(level)) == line


def test_a_short_line_keeps_the_traceback() -> None:
    try:
        raise ValueError("not today")
    except ValueError:
        text = ShortLines().format(record(logging.ERROR, sys.exc_info()[1]))
    assert text.startswith("ERROR: lag is 7\nTraceback")
    assert text.endswith("ValueError: not today")
