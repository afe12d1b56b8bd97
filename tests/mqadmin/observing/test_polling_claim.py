"""One worker at a time polls a cluster; one that was killed, or was overtaken, keeps nobody from it for long."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from mqadmin.clusters.models import Cluster, Topic
from mqadmin.observing import polling_claim, polling_cycle, tasks
from mqadmin.observing.gateway import GatewayError, ask
from mqadmin.observing.polling_claim import CLAIMED_FOR, KEPT_UP_EVERY, OFFERED_FOR_S, ClaimLost, PollingClaim
from mqadmin.observing.polling_cycle import POLL_INTERVAL_S
from remoting.wire.bodies.topics import TopicConfig
from tests.support.scripted_broker import ScriptedBroker

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
SOON = NOW + timedelta(seconds=POLL_INTERVAL_S)
# A claim of another worker.
ANOTHERS = datetime(2036, 1, 1, tzinfo=UTC)


@pytest.fixture
def broker() -> Iterator[ScriptedBroker]:
    with ScriptedBroker(is_watched=False) as broker:
        broker.tables.topics["orders"] = TopicConfig(topic_name="orders")
        yield broker


@pytest.fixture
def cluster() -> Cluster:
    return Cluster.objects.create(name="prod", namesrv="127.0.0.1:1", kind="apache")


def held_until() -> datetime | None:
    return Cluster.objects.values_list("poll_claimed_until", flat=True).get()


def test_cycle_is_offered_once_per_interval(cluster: Cluster) -> None:
    assert polling_claim.offer(cluster, NOW)
    assert not polling_claim.offer(cluster, NOW + timedelta(seconds=5))
    assert polling_claim.offer(cluster, SOON)


def test_task_does_nothing_while_another_has_the_cycle(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def ask_for_long(*_: Any) -> None:
        asked.append(cluster.pk)
        if len(asked) < 3:
            tasks.poll_cluster(cluster.pk)
        raise GatewayError("no name server answers")

    monkeypatch.setattr(polling_cycle, "ask", ask_for_long)
    tasks.poll_cluster(cluster.pk)
    assert len(asked) == 1
    assert held_until() is None
    tasks.poll_cluster(cluster.pk)
    assert len(asked) == 2, "its end lets the next one begin"


def test_cycle_is_not_offered_while_one_is_under_way(cluster: Cluster) -> None:
    claim = polling_claim.take(cluster.pk, NOW)
    assert claim is not None
    assert not polling_claim.offer(cluster, SOON)
    claim.release()
    assert polling_claim.offer(cluster, SOON)


def test_cycle_that_fails_lets_others_have_the_next(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(polling_cycle, "ask", fail)
    with pytest.raises(ZeroDivisionError):
        polling_claim.run_cycle(cluster.pk, NOW)
    assert held_until() is None


def test_worker_that_was_killed_keeps_others_from_the_cluster_until_its_claim_ends(cluster: Cluster) -> None:
    assert polling_claim.take(cluster.pk, NOW) is not None
    before, after = NOW + CLAIMED_FOR - timedelta(seconds=1), NOW + CLAIMED_FOR
    assert not polling_claim.offer(cluster, before)
    assert polling_claim.take(cluster.pk, before) is None
    assert polling_claim.offer(cluster, after)
    assert polling_claim.take(cluster.pk, after) is not None


def test_cluster_that_is_followed_by_now_is_not_polled(cluster: Cluster) -> None:
    Cluster.objects.update(kind="")
    assert polling_claim.take(cluster.pk, NOW) is None


def test_cycle_that_takes_long_keeps_its_claim_and_counts_as_polling(cluster: Cluster) -> None:
    moments = [NOW + timedelta(seconds=1), NOW + KEPT_UP_EVERY]
    claim = polling_claim.take(cluster.pk, NOW)
    assert claim is not None
    claim.clock = iter(moments).__next__
    claim.keep()
    assert held_until() == NOW + CLAIMED_FOR, "a young claim is not written again"
    claim.keep()
    cluster.refresh_from_db()
    assert (cluster.poll_claimed_until, cluster.last_tried_at) == (moments[1] + CLAIMED_FOR, moments[1])


@pytest.mark.parametrize("after", [timedelta(seconds=1), KEPT_UP_EVERY], ids=["young", "old"])
def test_claim_that_another_has_by_now_is_lost_and_left_alone(cluster: Cluster, after: timedelta) -> None:
    claim = polling_claim.take(cluster.pk, NOW)
    assert claim is not None
    claim.clock = lambda: NOW + after
    Cluster.objects.update(poll_claimed_until=ANOTHERS)
    with pytest.raises(ClaimLost):
        claim.keep()
    claim.release()
    assert held_until() == ANOTHERS


@pytest.mark.parametrize(
    "lose",
    [
        lambda: Cluster.objects.update(poll_claimed_until=ANOTHERS),
        lambda: Cluster.objects.get().point_at("127.0.0.1:1"),
        lambda: Cluster.objects.all().delete(),
    ],
    ids=["overtaken", "other name servers", "removed"],
)
def test_cycle_that_lost_its_claim_writes_nothing(
    cluster: Cluster, broker: ScriptedBroker, monkeypatch: pytest.MonkeyPatch, lose: Callable[[], object]
) -> None:
    def ask_and_lose(*arguments: Any) -> object:
        found = ask(*arguments)
        lose()
        return found

    monkeypatch.setattr(polling_cycle, "ask", ask_and_lose)
    Cluster.objects.update(namesrv=broker.address)
    assert polling_claim.run_cycle(cluster.pk, NOW)
    assert not Topic.objects.exists()
    assert not cluster.brokers.exists()


def test_cycle_that_keeps_its_claim_writes_what_it_found(cluster: Cluster, broker: ScriptedBroker) -> None:
    Cluster.objects.update(namesrv=broker.address)
    assert polling_claim.run_cycle(cluster.pk, NOW)
    assert Topic.objects.get().name == "orders"
    cluster.refresh_from_db()
    assert (cluster.state, cluster.poll_claimed_until) == ("reachable", None)


def test_cluster_that_was_not_asked_for_longest_is_offered_first_whoever_was_offered_last(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slow clusters keep all workers busy meanwhile: the offer of the one that had no turn expires."""
    starved = Cluster.objects.create(name="starved", namesrv="127.0.0.1:2", kind="apache")
    sent: list[int] = []
    monkeypatch.setattr(tasks.follow_clusters, "apply_async", lambda **_: None)
    monkeypatch.setattr(tasks.poll_cluster, "apply_async", lambda args, **_: sent.append(args[0]))
    tasks.ensure_observing()
    claim = polling_claim.take(cluster.pk, timezone.now())
    assert claim is not None
    claim.release()
    Cluster.objects.update(poll_offered_at=timezone.now() - timedelta(seconds=OFFERED_FOR_S))
    tasks.ensure_observing()
    assert sent == [cluster.pk, starved.pk, starved.pk, cluster.pk]


def test_cycle_says_until_its_end_that_the_cluster_is_asked(cluster: Cluster) -> None:
    assert cluster.asked_until(NOW) is None
    claim = polling_claim.take(cluster.pk, NOW)
    assert claim is not None
    claim.clock = lambda: NOW + timedelta(seconds=80)
    cluster.refresh_from_db()
    assert cluster.asked_until(NOW + timedelta(seconds=70)) == NOW + timedelta(seconds=70)
    claim.release()
    cluster.refresh_from_db()
    assert cluster.asked_until(NOW + timedelta(seconds=90)) == NOW + timedelta(seconds=80)


def test_cluster_that_got_other_name_servers_while_what_was_found_is_measured_keeps_them(
    cluster: Cluster, broker: ScriptedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polling_cycle, "publish", lambda *_: Cluster.objects.get().point_at("127.0.0.1:1"))
    Cluster.objects.update(namesrv=broker.address)
    assert polling_claim.run_cycle(cluster.pk, NOW)
    cluster.refresh_from_db()
    assert (cluster.namesrv, cluster.kind, cluster.state) == ("127.0.0.1:1", "", "new")


def test_task_waits_for_a_worker_no_longer_than_until_the_next_one_is_offered(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[dict[str, Any]] = []
    monkeypatch.setattr(tasks.follow_clusters, "apply_async", lambda **_: None)
    monkeypatch.setattr(tasks.poll_cluster, "apply_async", lambda **how: sent.append(how))
    tasks.ensure_observing()
    assert sent == [{"args": (cluster.pk,), "expires": OFFERED_FOR_S}]
    assert OFFERED_FOR_S < POLL_INTERVAL_S


@pytest.mark.django_db(transaction=True)
def test_of_workers_that_claim_at_once_one_wins(cluster: Cluster) -> None:
    workers = 4
    together = threading.Barrier(workers)

    def take(_: int) -> PollingClaim | None:
        try:
            together.wait()
            return polling_claim.take(cluster.pk, NOW)
        finally:
            connection.close()

    with ThreadPoolExecutor(workers) as threads:
        claims = list(threads.map(take, range(workers)))
    assert sum(claim is not None for claim in claims) == 1
