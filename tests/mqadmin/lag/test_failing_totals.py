"""What of the numbers that brokers tell is kept to count failures by, and what of a new broker counts as news."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from mqadmin.clusters.models import Cluster, Group
from mqadmin.lag.failing import QUEUES_MAX, TOTAL_MAX, FailingSample, Totals, appended
from mqadmin.lag.failing_totals import TopicEnds, totals_of
from mqadmin.observing import synchroniser
from mqadmin.observing.observation import (
    BrokerObserved,
    CommitObserved,
    GroupObserved,
    GroupSettingsObserved,
    Observation,
    QueueObserved,
    TopicObserved,
)
from remoting.wire.bodies.message_queue import MessageQueue

NOW = timezone.now()


@pytest.mark.parametrize(
    ("consumed", "of_topics", "totals"),
    [
        (40, {"%DLQ%billing": (7, 1), "%RETRY%billing": (12, 2)}, Totals(7, 12, 40, 1, 2)),
        (None, {}, Totals(0, 0, 0, 0, 0)),
        (40, {"%RETRY%billing": (None, 1)}, Totals(0, 0, 40, 0, 1)),
        # Apache's brokers tell -1 for a queue of which nothing was ever committed.
        (-4, {"%DLQ%billing": (-1, 1)}, Totals(0, 0, 0, 1, 0)),
        (2**70, {"%DLQ%billing": (2**70, 10**6)}, Totals(TOTAL_MAX, 0, TOTAL_MAX, QUEUES_MAX, 0)),
    ],
    ids=["known", "no topics", "retries not asked for", "never committed", "absurd"],
)
def test_totals_of_a_group_can_be_kept_whatever_brokers_tell(
    consumed: int | None, of_topics: dict[str, tuple[int | None, int]], totals: Totals
) -> None:
    assert totals_of("billing", consumed, TopicEnds(of_topics)) == totals
    assert appended(b"", FailingSample(1_000_000_000, totals))


@pytest.mark.parametrize("ends", [None, TopicEnds({"%DLQ%billing": (None, 1)})])
def test_totals_that_are_not_known_are_not_made_up(ends: TopicEnds | None) -> None:
    assert totals_of("billing", 40, ends) is None


class Observed:
    """A cluster whose brokers tell what they have, a minute apart."""

    def __init__(self, *, is_watched: bool) -> None:
        self._cluster = Cluster.objects.create(
            name="shop", namesrv="127.0.0.1:9876", kind="ours" if is_watched else "apache"
        )
        self._is_watched = is_watched
        self._at = NOW

    def list_brokers(self, *names: str) -> None:
        """Has the name servers list these."""
        rows = [BrokerObserved(name=name, broker_id=0, address=f"{name}:10911") for name in names]
        synchroniser.apply_brokers(self._cluster, rows, self._at)

    def tell(self, broker: str = "", *, dead: dict[str, int], retried: int = 0, is_whole: bool = True) -> Group:
        """Has a broker ("": all) tell all that it has; returns the group. `dead`: by broker, how many are there."""
        self._at += timedelta(minutes=1)
        group = GroupObserved(name="billing", settings=GroupSettingsObserved(True, 16), members=(), owners={})
        ends = {MessageQueue("%DLQ%billing", name, 0): count for name, count in dead.items()}
        ends |= {MessageQueue("%RETRY%billing", broker or "broker-a", 0): retried} if retried else {}
        orders = MessageQueue("orders", broker or "broker-a", 0)
        facts = Observation(
            at=self._at,
            is_complete=is_whole,
            of_broker=broker,
            topics=tuple(TopicObserved(name, 1, 1, 6) for name in dict.fromkeys(("orders", *(q.topic for q in ends)))),
            queues=tuple(QueueObserved(queue, 0, end, None) for queue, end in {orders: 9, **ends}.items()),
            groups=(group,),
            committed=(CommitObserved("billing", orders, 9),),
        )
        synchroniser.apply(self._cluster, facts, is_watched=self._is_watched)
        return Group.objects.get()


@pytest.mark.django_db
def test_old_dead_letters_of_a_broker_that_is_watched_later_are_no_news() -> None:
    shop = Observed(is_watched=True)
    shop.list_brokers("broker-a", "broker-b")
    assert shop.tell("broker-a", dead={}).died_lately == 0
    group = shop.tell("broker-b", dead={"broker-b": 400}, retried=6000)
    assert (group.verdict, group.died_lately, group.retried_lately) == ("quiet", 0, 0)
    group = shop.tell("broker-b", dead={"broker-b": 401}, retried=6001, is_whole=False)
    assert (group.verdict, group.died_lately, group.retried_lately) == ("failing", 1, 1)


@pytest.mark.django_db
def test_old_dead_letters_of_a_broker_that_was_restarted_are_no_news() -> None:
    """While it is down no name server lists it, and what it alone had is gone from the rows."""
    prod = Observed(is_watched=False)
    prod.list_brokers("broker-a", "broker-b")
    assert prod.tell(dead={"broker-b": 400}).died_lately == 0
    prod.list_brokers("broker-a")
    assert prod.tell(dead={}).died_lately == 0
    prod.list_brokers("broker-a", "broker-b")
    group = prod.tell(dead={"broker-b": 400})
    assert (group.verdict, group.died_lately) == ("quiet", 0)
    group = prod.tell(dead={"broker-b": 402})
    assert (group.verdict, group.died_lately) == ("failing", 2)


@pytest.mark.django_db
def test_first_dead_letter_on_brokers_that_are_known_is_news() -> None:
    prod = Observed(is_watched=False)
    prod.list_brokers("broker-a")
    assert prod.tell(dead={}).died_lately == 0
    assert prod.tell(dead={"broker-a": 1}).died_lately == 1
