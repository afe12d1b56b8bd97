"""Log lines: short ones, and objects from each process and from `manage.py up` for all of them."""

from __future__ import annotations

import io
import json
import logging
import os
import sys
import threading
from datetime import UTC, datetime
from typing import Any

import pytest

from mqadmin.log_lines import ForkSafeStreamHandler, JsonLines, ShortLines
from mqadmin.supervision.log import Log
from tests.support.forked import exit_code_of
from tests.support.waiting import WITHIN_S


def record(message: str, *args: object) -> logging.LogRecord:
    made = logging.LogRecord("mqadmin.redis", logging.WARNING, "file.py", 1, message, args, None)
    made.created = 1_769_851_800.1234
    return made


def test_a_record_is_one_object_on_one_line() -> None:
    line = JsonLines().format(record("group %s\nis \u2028 \x1b[31mred", "billing"))
    assert "\n" not in line
    assert line.isascii()
    entry = json.loads(line)
    assert entry["message"] == "group billing\nis \u2028 \x1b[31mred"
    assert (entry["level"], entry["logger"]) == ("WARNING", "mqadmin.redis")
    assert entry["time"] == "2026-01-31T09:30:00.123Z"


def test_a_traceback_is_a_field() -> None:
    made = record("it failed")
    try:
        raise ValueError("why")
    except ValueError:
        made.exc_info = sys.exc_info()
    entry = json.loads(JsonLines().format(made))
    assert entry["message"] == "it failed"
    assert entry["exception"].endswith("ValueError: why")


def test_up_names_the_process_and_wraps_what_is_no_object() -> None:
    stream = io.StringIO()
    log = Log(stream, lambda: datetime(2026, 1, 31, 9, 30, 0, 5_000, tzinfo=UTC), is_json=True)
    log.line("jobs", '{"level": "ERROR", "message": "x"}')
    log.line("redis", "Warning: 17")
    log.line("redis", "17")
    assert [json.loads(line) for line in stream.getvalue().splitlines()] == [
        {"level": "ERROR", "message": "x", "process": "jobs"},
        {"time": "2026-01-31T09:30:00.005Z", "level": "INFO", "message": "Warning: 17", "process": "redis"},
        {"time": "2026-01-31T09:30:00.005Z", "level": "INFO", "message": "17", "process": "redis"},
    ]


def lag_record(level: int, error: BaseException | None = None) -> logging.LogRecord:
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
    assert ShortLines().format(lag_record(level)) == line


def test_a_short_line_keeps_the_traceback() -> None:
    try:
        raise ValueError("not today")
    except ValueError:
        text = ShortLines().format(lag_record(logging.ERROR, sys.exc_info()[1]))
    assert text.startswith("ERROR: lag is 7\nTraceback")
    assert text.endswith("ValueError: not today")


class FullPipe(io.RawIOBase):
    """Has the writer of a line wait, as a pipe that nobody reads does, until `is_read`."""

    def __init__(self) -> None:
        self.is_written_to = threading.Event()
        self.is_read = threading.Event()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.is_written_to.set()
        self.is_read.wait()
        return len(data)


def test_a_process_forked_while_another_thread_writes_a_line_can_write_lines() -> None:
    pipe = FullPipe()
    handler = ForkSafeStreamHandler(io.TextIOWrapper(io.BufferedWriter(pipe), write_through=True))
    line = record("a line")
    writing = threading.Thread(target=handler.handle, args=(line,))
    writing.start()
    assert pipe.is_written_to.wait(WITHIN_S)
    # Of what is to be called before a fork, what was registered last is called first.
    os.register_at_fork(before=pipe.is_read.set)
    assert exit_code_of(lambda: handler.handle(line)) == 0
    writing.join()
