"""29011 and 29012 as a driver sees them: the lease follows the connection, steps carry its epoch."""

from __future__ import annotations

import pytest

from broker.engine.processors.scheduler_lease import SchedulerLease
from broker.engine.processors.scheduler_step import SchedulerStep
from broker.engine.schedule.delay import DelayedDelivery
from broker.engine.schedule.level_history import LevelHistory
from broker.engine.schedule.progress import ProgressFile
from broker.engine.schedule.scheduler import Scheduler
from broker.engine.store.errors import StoreFull
from remoting.wire.bodies.document import read_body
from remoting.wire.bodies.scheduler import Agenda
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.headers.scheduler import SchedulerLeaseResponseHeader
from remoting.wire.headers.typed import read_header
from remoting.wire.names import SCHEDULE_TOPIC
from tests.support.broker_parts import BrokerParts, Wire
from tests.support.delay_levels import DEFAULT_LEVELS
from tests.support.stores import bodies, draft


class Driven(BrokerParts):
    """With the scheduler and its two processors."""

    def __init__(self, folder) -> None:
        super().__init__(folder)
        file = ProgressFile(folder / "config" / "delayOffset.json")
        self.delivery = DelayedDelivery(
            self.store, LevelHistory(folder / "config", DEFAULT_LEVELS), file, lambda: None, self.clock
        )
        self.delivery.recover()
        self.scheduler = Scheduler({"delay": self.delivery}, self.clock, self.watch.scheduler_changed, self.complaints)
        self.lease = SchedulerLease(self.scheduler)
        self.step = SchedulerStep(self.scheduler)

    def ask_lease(self, wire: Wire, driver: str, epoch: int = 0, wait_ms: int = 0):
        fields = {"driver": driver, "epoch": str(epoch), "leaseMs": "2000", "waitMs": str(wait_ms)}
        answer = self.ask(self.lease, Command(code=RequestCode.SCHEDULER_LEASE, opaque=8, ext_fields=fields), wire)
        if answer is None:
            return None
        return read_header(SchedulerLeaseResponseHeader, answer.ext_fields), read_body(Agenda, answer.body)

    def ask_step(self, wire: Wire, epoch: int, kind: str = "delay", key: str = "3") -> Command:
        fields = {"epoch": str(epoch), "kind": kind, "key": key, "untilMs": str(self.clock())}
        return self.ask(self.step, Command(code=RequestCode.SCHEDULER_STEP, ext_fields=fields), wire)

    def wait_ten_seconds(self, body: bytes) -> None:
        text = "REAL_TOPIC\x01orders\x02REAL_QID\x010\x02DELAY\x013\x02"
        due_ms = self.clock() + 10_000
        message = draft(body, topic=SCHEDULE_TOPIC, queue_id=2, properties_text=text, tags_code=due_ms)
        self.delivery.appended([self.store.append(message)])


@pytest.fixture
async def parts(tmp_path):
    parts = Driven(tmp_path / "store")
    yield parts
    parts.scheduler.stop()
    await parts.delivery.stop()
    parts.close()


@pytest.fixture
def wire():
    return Wire()


async def test_lease_is_granted_with_the_agenda(parts, wire):
    parts.wait_ten_seconds(b"one")
    header, agenda = parts.ask_lease(wire, "a")

    assert (header.granted, header.holder, header.broker_now_ms) == (True, "a", parts.clock())
    (entry,) = agenda.entries
    assert (entry.kind, entry.key, entry.waiting_count) == ("delay", "3", 1)
    assert entry.next_due_ms == parts.clock() + 10_000


async def test_step_delivers_what_is_due_and_says_how_late(parts, wire):
    parts.wait_ten_seconds(b"one")
    epoch = parts.ask_lease(wire, "a")[0].epoch

    assert parts.ask_step(wire, epoch).ext_fields == {"delivered": "0", "lateMs": "-1"}
    parts.clock.now_ms += 10_007
    assert parts.ask_step(wire, epoch).ext_fields == {"delivered": "1", "lateMs": "7"}
    assert bodies(parts.store) == [b"one"]


async def test_step_refuses_a_stale_epoch(parts, wire):
    epoch = parts.ask_lease(wire, "a")[0].epoch
    parts.lease.connection_lost(wire)
    parts.ask_lease(Wire(), "b")

    assert parts.ask_step(wire, epoch).code == ResponseCode.SCHEDULER_EPOCH_STALE


@pytest.mark.parametrize(("kind", "key"), [("timer", "3"), ("delay", "99")])
async def test_step_refuses_what_the_broker_does_not_schedule(parts, wire, kind, key):
    epoch = parts.ask_lease(wire, "a")[0].epoch
    answer = parts.ask_step(wire, epoch, kind, key)

    assert answer.code == ResponseCode.INVALID_PARAMETER
    assert key in answer.remark


async def test_step_says_when_the_store_is_full_and_loses_nothing(parts, wire, monkeypatch):
    parts.wait_ten_seconds(b"one")
    epoch = parts.ask_lease(wire, "a")[0].epoch
    parts.clock.now_ms += 10_000

    def refuse(_):
        raise StoreFull("no room")

    with monkeypatch.context() as full:
        full.setattr(parts.store, "append_batch", refuse)
        assert parts.ask_step(wire, epoch).code == ResponseCode.SERVICE_NOT_AVAILABLE
    assert parts.ask_step(wire, epoch).ext_fields["delivered"] == "1"


async def test_lease_goes_to_the_standby_when_the_drivers_connection_closes(parts, wire):
    standby = Wire()
    parts.ask_lease(wire, "a")
    assert parts.ask_lease(standby, "b", wait_ms=900) is None
    parts.lease.connection_lost(wire)

    header = read_header(SchedulerLeaseResponseHeader, standby.sent[0].ext_fields)
    assert (header.granted, header.holder, standby.sent[0].opaque) == (True, "b", 8)


async def test_lease_is_not_given_to_a_standby_that_is_gone(parts, wire):
    standby = Wire()
    parts.ask_lease(wire, "a")
    parts.ask_lease(standby, "b", wait_ms=900)
    parts.lease.connection_lost(standby)
    parts.lease.connection_lost(wire)

    assert parts.scheduler.state.driver == ""
    assert standby.sent == []


async def test_lease_of_a_driver_that_came_again_is_kept_when_its_old_connection_closes(parts, wire):
    fresh = Wire()
    parts.ask_lease(wire, "a")
    epoch = parts.ask_lease(fresh, "a")[0].epoch
    parts.lease.connection_lost(wire)

    assert parts.scheduler.state.driver == "a"
    assert parts.ask_step(fresh, epoch).code == ResponseCode.SUCCESS
