from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mqadmin.rebalances.churn import WEIGHTS, Churn, Restlessness, Tally, churn
from mqadmin.rebalances.models import RebalanceKind

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def weighed(*events: tuple[float, str]) -> Churn:
    """`events`: how many minutes before noon, and the kind."""
    return churn([(NOON - timedelta(minutes=minutes), kind) for minutes, kind in events], NOON)


@pytest.mark.parametrize(
    ("events", "tally"),
    [
        ([], Tally()),
        ([(5, "joined")], Tally(1, 0, 1)),
        ([(5, "joined"), (4.5, "joined"), (4, "queues_moved")], Tally(1, 0, 1)),
        ([(5, "joined"), (3, "joined")], Tally(2, 0, 2)),
        ([(4, "queues_moved"), (5, "lost"), (4.5, "lost")], Tally(1, 2, 3)),
        ([(5, "subscription_changed")], Tally(1, 0, 2)),
        ([(70, "lost"), (5, "gone")], Tally(1, 0, 1)),
    ],
    ids=["nothing", "one", "together", "apart", "as its heaviest", "subscription", "an hour"],
)
def test_score_is_that_of_rebalances_not_of_events(events: list[tuple[float, str]], tally: Tally) -> None:
    assert weighed(*events).hour == tally


def test_day_has_what_the_hour_has_not() -> None:
    found = weighed((70, "lost"), (5, "gone"), (25 * 60, "lost"))
    assert found.day == Tally(2, 1, 4)


@pytest.mark.parametrize(
    ("count", "apart_minutes", "word"),
    [
        (4, 2, Restlessness.CALM),
        (5, 2, Restlessness.RESTLESS),
        (12, 2, Restlessness.CHURNING),
        (23, 60, Restlessness.CALM),
        (24, 58, Restlessness.RESTLESS),
        (96, 14, Restlessness.CHURNING),
    ],
)
def test_word_follows_from_the_hour_or_the_day(count: int, apart_minutes: int, word: Restlessness) -> None:
    assert weighed(*((number * apart_minutes, "joined") for number in range(count))).restlessness == word


def test_every_observed_kind_has_a_weight() -> None:
    by_runtime = {kind for kind in RebalanceKind if kind == "scaled" or kind.startswith("instance_")}
    assert set(WEIGHTS) == set(RebalanceKind) - by_runtime
