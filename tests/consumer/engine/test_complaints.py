from __future__ import annotations

import logging

import pytest

from consumer.engine.complaints import SUBJECTS_MAX, Complaints

logger = logging.getLogger("test.complaints")


def test_the_same_trouble_is_said_once_in_ten_seconds_and_anew_after_it_was_settled(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now_s = 0.0
    complaints = Complaints(logger, lambda: now_s)
    complaints.warn("broker", "away")
    now_s = 9.0
    complaints.warn("broker", "away")
    complaints.warn("topic", "unknown")
    now_s = 10.0
    complaints.warn("broker", "away")
    complaints.settled("broker")
    complaints.warn("broker", "away")
    assert [record.message for record in caplog.records] == ["away", "unknown", "away (still)", "away"]


def test_the_subjects_remembered_are_limited() -> None:
    complaints = Complaints(logger, lambda: 0.0)
    for number in range(SUBJECTS_MAX + 50):
        complaints.warn(str(number), "x")
    assert len(complaints._said_s) == SUBJECTS_MAX
