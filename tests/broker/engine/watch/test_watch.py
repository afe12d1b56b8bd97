"""The watch request: who waits is told once, progress is gathered, and nobody waits without a bound."""

from __future__ import annotations

import asyncio

import pytest

from broker.engine.groups.members import Member
from broker.engine.store.values import Appended
from broker.engine.watch.watch import WATCHERS_MAX, Watch
from remoting.wire.bodies import watch as kinds
from remoting.wire.codes import LanguageCode
from tests.support.broker_parts import Wire
from tests.support.manual_clock import ManualClock
from tests.support.waiting import eventually


@pytest.fixture
async def watch():
    watch = Watch(ManualClock(5), progress_interval_s=0.02, gather_s=0.002)
    yield watch
    watch.stop()


class Watcher:
    """Asks again as soon as it is told, as the console does."""

    def __init__(self, watch: Watch, *, asks_again: bool = True) -> None:
        self.watch = watch
        self.wire = Wire()
        self.since = watch.revision
        self.told: list[list[str]] = []
        self.affected = []
        self._asks_again = asks_again
        watch.park(self.wire, 30_000, self._tell)

    def _tell(self) -> None:
        events, affected = self.watch.changes_since(self.watch.boot, self.since)
        self.since = self.watch.revision
        self.told.append([event.kind for event in events])
        self.affected.append(affected)
        if self._asks_again:
            self.watch.park(self.wire, 30_000, self._tell)


def member(client_id: str = "me@1") -> Member:
    return Member(client_id, Wire(), LanguageCode.JAVA, 479, 5, 5, 5)


def appended(queue_offset: int, topic: str = "orders") -> Appended:
    return Appended(topic, 0, queue_offset, 100 * queue_offset, 100, 5, 0)


async def test_what_happens_in_one_breath_is_told_together(watch) -> None:
    watcher = Watcher(watch)
    watch.joined("billing", member())
    watch.subscribed("billing", member(), ["orders"])
    await eventually(lambda: watcher.told)
    assert watcher.told == [[kinds.MEMBER_JOINED, kinds.SUBSCRIPTION_CHANGED]]
    assert watcher.affected[0].groups == {"billing"}


async def test_a_busy_queue_is_one_progress_event_per_interval(watch) -> None:
    watcher = Watcher(watch)
    for queue_offset in range(1000):
        watch.appended([appended(queue_offset)])
    watch.committed("billing", "orders", 0)
    await eventually(lambda: watcher.told)
    assert watcher.told == [[kinds.PROGRESS]]
    assert watcher.affected[0].queues == {("orders", 0)}
    assert watcher.affected[0].commits == {("billing", "orders", 0)}
    watch.appended([appended(1000)])
    await eventually(lambda: len(watcher.told) == 2)
    assert watch.revision == 3


async def test_progress_costs_no_events_while_nobody_watches(watch) -> None:
    for queue_offset in range(10):
        watch.appended([appended(queue_offset)])
    assert watch.revision == 1
    watcher = Watcher(watch)
    await eventually(lambda: watcher.told)
    assert watcher.told == [[kinds.PROGRESS]], "what grew before is told to the first who asks"


async def test_a_pull_is_told_once_and_a_take_over_with_both_names(watch) -> None:
    for client_id in ("a", "a", "b", "b"):
        watch.pulled("billing", "orders", 0, client_id)
    events, _ = watch.changes_since(watch.boot, 1)
    assert [(event.kind, event.queue_id, event.detail) for event in events] == [
        (kinds.ASSIGNMENT_CHANGED, 0, {"from": "", "to": "a"}),
        (kinds.ASSIGNMENT_CHANGED, 0, {"from": "a", "to": "b"}),
    ]
    watch.left("billing", member("b"), was_lost=True)
    assert list(watch.assignments.of_group("billing")) == []


async def test_a_watcher_hears_nothing_when_its_wait_is_over(watch) -> None:
    told: list[int] = []
    assert watch.park(Wire(), 10, lambda: told.append(watch.revision))
    await eventually(lambda: told)
    assert told == [1]


async def test_a_watcher_whose_connection_is_gone_is_forgotten(watch) -> None:
    gone, closing = Watcher(watch, asks_again=False), Watcher(watch, asks_again=False)
    watch.connection_lost(gone.wire)
    closing.wire.is_open = False
    stays = Watcher(watch, asks_again=False)
    watch.topic_changed("orders")
    await eventually(lambda: stays.told)
    assert (gone.told, closing.told) == ([], [])


async def test_too_many_watchers_are_not_kept_waiting(watch) -> None:
    wire = Wire()
    assert all(watch.park(wire, 30_000, lambda: None) for _ in range(WATCHERS_MAX))
    assert watch.park(wire, 30_000, lambda: None) is False


@pytest.mark.parametrize(("boot", "since"), [("other", 1), ("", 0), (None, 0), (None, 99), (None, -1)])
async def test_only_a_snapshot_helps_who_knows_nothing_of_this_life(watch, boot, since) -> None:
    watch.topic_changed("orders")
    assert watch.changes_since(watch.boot if boot is None else boot, since) is None


async def test_a_stopped_watch_leaves_no_timer(watch) -> None:
    watcher = Watcher(watch)
    watch.topic_changed("orders")
    watch.stop()
    await asyncio.sleep(0.05)
    assert watcher.told == []
