"""Structured logs: an object a line, from each process and from `manage.py up` for all of them."""

from __future__ import annotations

import io
import json
import logging
import sys
from datetime import UTC, datetime

from mqadmin.json_lines import JsonLines
from mqadmin.supervision.log import Log


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
