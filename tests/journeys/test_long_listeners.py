"""Listeners that take long, in Java and in Python, on our broker and on Apache's: BUSY, and never STALLED.

On Apache's, what their members say also tells which queues moved between them.
"""

# ruff: noqa: F811 - fixtures are imported and asked for by the same name

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from channels.db import database_sync_to_async
from django.utils import timezone

from mqadmin.clusters import models
from mqadmin.clusters.models import ClusterKind, ClusterState, Group, MemberProgress, Verdict
from mqadmin.lag import measuring, verdicts
from mqadmin.observing import polling_cycle
from mqadmin.rebalances.models import RebalanceEvent
from mqadmin.subscriptions import asking
from mqadmin.subscriptions.models import MemberAnswer
from tests.journeys.acting import cluster, java  # noqa: F401 - fixtures
from tests.support.slow_member import WARM_UP, slow_member
from tests.support.waiting import eventually, wait_until

pytestmark = [pytest.mark.journey, pytest.mark.java, pytest.mark.django_db(transaction=True)]

# A minute is what people wait; the rule is the same. Longer than it takes until the members have said what they hold.
STALLED_AFTER_S = 15
WITHIN_S = 240
QUEUE_COUNT = 4
# The console itself looks every few seconds, and each look costs a tenth of a second of processor time.
LOOKS_EVERY_S = 1.0


@pytest.fixture
def observed(cluster, monkeypatch: Any) -> Callable[[], None]:
    """One cycle of polling, and one round of questions to members: of ours, too, as if it could not be watched."""
    for module in (verdicts, measuring):
        monkeypatch.setattr(module, "STALLED_AFTER_S", STALLED_AFTER_S)
    monkeypatch.setattr(asking, "WAITS_LONG", timedelta(0))
    there = models.Cluster.objects.create(name="there", namesrv=cluster.namesrv, kind=ClusterKind.APACHE)

    def observe() -> None:
        polling_cycle.poll_once(there, timezone.now())
        models.Cluster.objects.filter(pk=there.pk).update(kind=ClusterKind.APACHE, state=ClusterState.REACHABLE)
        there.refresh_from_db()
        MemberAnswer.objects.update(asked_at=None)
        asking.ask_round(there, timezone.now())

    return observe


def words_until_busy(observed: Callable[[], None], group: str) -> list[str]:
    """Returns the verdicts that the group had, up to BUSY."""
    words: list[str] = []

    def is_busy() -> bool:
        observed()
        found = Group.objects.filter(name=group).values_list("verdict", flat=True).first()
        words.append(found or "")
        return found == Verdict.BUSY

    wait_until(is_busy, WITHIN_S, f"{group} is busy", pause_max_s=LOOKS_EVERY_S)
    return words


def test_a_java_listener_that_takes_long_is_busy_and_its_queues_are_seen_to_move(java, fresh, observed) -> None:
    topic, group, producer, first, second = (fresh(word) for word in ("slow", "readers", "sender", "first", "second"))
    outcomes = {"slow0": [{"do": "ok", "sleep_ms": 600_000}]}
    java.producer(producer)
    java.send(producer, topic, body="warm-up", count=WARM_UP)
    java.consumer(first, group, topic, outcomes=outcomes)
    java.wait_events("consumed", WARM_UP, first)
    known = lambda: _lag_is_known(observed, group)  # noqa: E731 - read as a word
    wait_until(known, WITHIN_S, "all committed offsets are known", pause_max_s=LOOKS_EVERY_S)
    java.send(producer, topic, body="slow")
    words = words_until_busy(observed, group)
    assert Verdict.STALLED not in words
    row = Group.objects.get(name=group)
    assert row.verdict_rule == "listener_takes_long"
    assert row.verdict_numbers["in_flight"] == 1
    assert row.verdict_numbers["timeout_s"] == 15 * 60
    java.consumer(second, group, topic, outcomes=outcomes)

    def moved() -> set[int]:
        observed()
        found = RebalanceEvent.objects.filter(group__name=group, kind="queues_moved")
        moves = [one for event in found for one in event.details["moves"] if one["topic"] == topic]
        # Between the two, a queue may be seen with nobody.
        given = {one["queue_id"] for one in moves if one["from"].endswith(f"@{first}")}
        return given & {one["queue_id"] for one in moves if one["to"].endswith(f"@{second}")}

    wait_until(
        lambda: len(moved()) == QUEUE_COUNT // 2, WITHIN_S, "half of the queues have moved", pause_max_s=LOOKS_EVERY_S
    )
    java.stop(second)
    java.stop(first)
    java.stop(producer)


async def test_a_python_listener_that_takes_long_is_busy(cluster, fresh, observed) -> None:
    topic, group = fresh("slow"), fresh("readers")
    async with slow_member(cluster.namesrv, topic, group, fresh("sender")) as member:
        await eventually(lambda: member.given == WARM_UP, WITHIN_S)
        known = database_sync_to_async(lambda: _lag_is_known(observed, group))
        await eventually(known, WITHIN_S, pause_max_s=LOOKS_EVERY_S)
        await member.send_slow()
        words = await database_sync_to_async(words_until_busy)(observed, group)
        assert Verdict.STALLED not in words
        held = await database_sync_to_async(lambda: MemberProgress.objects.get(member__group__name=group))()
        assert sum(row[5] for row in held.queues) == 1


def _lag_is_known(observed: Callable[[], None], group: str) -> bool:
    observed()
    return Group.objects.filter(name=group, lag=0, unknown_queue_count=0, queue_count__gte=QUEUE_COUNT).exists()
