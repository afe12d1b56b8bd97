from __future__ import annotations

import logging

import pytest

from consumer.engine.recurring_warnings import KEYS_MAX, RecurringWarnings

logger = logging.getLogger("test.warnings")


def test_a_warning_is_logged_once_in_ten_seconds_and_at_once_after_it_was_resolved(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now_s = 0.0
    warnings = RecurringWarnings(logger, lambda: now_s)
    warnings.warn("broker", "away")
    now_s = 9.0
    warnings.warn("broker", "away")
    warnings.warn("topic", "unknown")
    now_s = 10.0
    warnings.warn("broker", "away")
    warnings.resolved("broker")
    warnings.warn("broker", "away")
    assert [record.message for record in caplog.records] == ["away", "unknown", "away (still)", "away"]


def test_the_keys_remembered_are_limited() -> None:
    warnings = RecurringWarnings(logger, lambda: 0.0)
    for number in range(KEYS_MAX + 50):
        warnings.warn(str(number), "x")
    assert len(warnings) == KEYS_MAX
