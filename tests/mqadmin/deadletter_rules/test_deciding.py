"""What a rule decides, as a table: rule, moment and dead letters in, decision out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mqadmin.deadletter_rules.deciding import Decision, Does, Fact, Rule, decide, is_within_hours, matches

NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)


def rule(**values: Any) -> Rule:
    return Rule(**{"group": "billing", "does": Does.REPLAY, "after": timedelta(minutes=10), **values})


def fact(number: int, *, minutes: float = 60, message: str = "", **values: Any) -> Fact:
    """A dead letter that died so many minutes ago."""
    said = {
        "group": "billing",
        "identity": "F1",
        "failure_class": "PaymentTimeout",
        "failure_text": "no answer after 30 s",
        **values,
    }
    return Fact(id=number, message_id=message or f"M{number}", dead_at=NOW - timedelta(minutes=minutes), **said)


@pytest.mark.parametrize(
    ("wanted", "facts", "counts", "decision"),
    [
        pytest.param(rule(), [], {}, Decision((), (), 0), id="nothing new"),
        pytest.param(rule(), [fact(1), fact(2)], {}, Decision((1, 2), (), 2), id="old enough"),
        pytest.param(rule(), [fact(1, minutes=10)], {}, Decision((1,), (), 1), id="just old enough"),
        pytest.param(rule(), [fact(1), fact(2, minutes=9.9)], {}, Decision((1,), (), 1), id="one is too young"),
        pytest.param(rule(), [fact(1, minutes=1), fact(2)], {}, Decision((), (), 0), id="a young one ends the look"),
        pytest.param(
            rule(), [fact(1, minutes=1, group="mail"), fact(2)], {}, Decision((2,), (), 2), id="a strange one does not"
        ),
        pytest.param(rule(), [fact(1)], {"M1": 1}, Decision((), (1,), 1), id="replayed as often as it may be"),
        pytest.param(rule(times_max=2), [fact(1)], {"M1": 1}, Decision((1,), (), 1), id="once more"),
        pytest.param(
            rule(times_max=2),
            [fact(1, message="M"), fact(2, message="M"), fact(3, message="M")],
            {},
            Decision((1, 2), (3,), 3),
            id="the same message thrice at once",
        ),
        pytest.param(
            rule(does=Does.ARCHIVE), [fact(1)], {"M1": 9}, Decision((1,), (), 1), id="only replays are counted"
        ),
        pytest.param(
            rule(taken_max=2), [fact(1), fact(2), fact(3)], {}, Decision((1, 2), (), 2), id="no more than it may take"
        ),
        pytest.param(
            rule(from_hour=8, to_hour=12), [fact(1)], {}, Decision((), (), 0, is_outside_hours=True), id="after hours"
        ),
        pytest.param(rule(from_hour=12, to_hour=13), [fact(1)], {}, Decision((1,), (), 1), id="within hours"),
    ],
)
def test_a_rule_decides(wanted, facts, counts, decision):
    assert decide(wanted, NOW, facts, counts, 0) == decision


@pytest.mark.parametrize(
    ("wanted", "given", "is_match"),
    [
        ({}, {}, True),
        ({"identity": "F1"}, {}, True),
        ({"identity": "F2"}, {}, False),
        ({"class_pattern": "Payment*"}, {}, True),
        ({"class_pattern": "payment*"}, {}, False),
        ({"text_pattern": "*answer*"}, {}, True),
        ({"text_pattern": "answer"}, {}, False),
        ({"class_pattern": "Payment*", "text_pattern": "nothing*"}, {}, False),
        ({"class_pattern": "*"}, {"failure_class": ""}, True),
        ({}, {"group": "mail"}, False),
        ({}, {"is_archived": True}, False),
    ],
)
def test_a_rule_is_about_its_group_its_failure_or_what_matches(wanted, given, is_match):
    assert matches(rule(**wanted), fact(1, **given)) is is_match


@pytest.mark.parametrize(
    ("hours", "zone", "utc_hour", "is_within"),
    [
        ((0, 0), "UTC", 3, True),
        ((8, 18), "UTC", 8, True),
        ((8, 18), "UTC", 17, True),
        ((8, 18), "UTC", 18, False),
        ((22, 6), "UTC", 23, True),
        ((22, 6), "UTC", 5, True),
        ((22, 6), "UTC", 6, False),
        ((8, 18), "Asia/Shanghai", 0, True),
        ((8, 18), "Asia/Shanghai", 10, False),
    ],
)
def test_hours_are_those_of_the_zone_and_may_go_over_midnight(hours, zone, utc_hour, is_within):
    moment = datetime(2026, 3, 4, utc_hour, 30, tzinfo=UTC)
    assert is_within_hours(rule(from_hour=hours[0], to_hour=hours[1], zone=zone), moment) is is_within
