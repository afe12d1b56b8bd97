"""Transactions on a real store: what is delivered, once, also over a kill; who is asked, when and how often."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from broker.engine.groups.members import Client
from broker.engine.store.errors import RecordRefused, StoreFull
from broker.engine.transactions import check_back as check_back_module
from broker.engine.transactions import transactions as transactions_module
from broker.engine.transactions.op_records import GATHER_S
from broker.engine.transactions.progress import GROUP
from remoting.wire.codes import RequestCode
from remoting.wire.errors import MessageError
from remoting.wire.names import CHECK_MAX_TIME_TOPIC, HALF_TOPIC, OP_HALF_TOPIC
from remoting.wire.stored_message import decode_message
from tests.support.broker_parts import BrokerParts, Wire
from tests.support.stores import abandon, bodies, draft, read_queue

TIMEOUT_MS = 6_000
INTERVAL_MS = 30_000
TIMES_MAX = 15
KEPT_MS = 72 * 3_600_000
OPS_WRITTEN_S = GATHER_S * 1.5


class _Requests:
    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def send_oneway(self, command) -> None:
        self._wire.sent.append(command)


class Broker:
    """Parts and the producers that are online; `restart` begins the next life on the same store."""

    def __init__(self, folder) -> None:
        self.folder = folder
        self.parts = BrokerParts(folder)
        self.clock = self.parts.clock
        self.count = 0
        self.transactions.recover()

    @property
    def transactions(self):
        return self.parts.transactions

    @property
    def store(self):
        return self.parts.store

    def online(self, group: str = "p") -> Wire:
        wire = Wire()
        wire.requester = _Requests(wire)
        self.parts.members._producers.setdefault(group, {})[wire] = Client(f"c{id(wire)}", wire, 0, 479, 0, 0, 0)
        return wire

    def send(self, body: bytes = b"one", queue_id: int = 0, **properties: str):
        """The half message as it was stored."""
        self.count += 1
        message = draft(body, "orders", queue_id, born_timestamp_ms=self.clock())
        found: list = []
        values = {"TRAN_MSG": "true", "PGROUP": "p", "UNIQ_KEY": f"u{self.count}", "TAGS": "paid", **properties}
        answer = self.transactions.begin(message, values, found.append)
        self.parts.accepting.submit(message, values, waits=True, answer=answer)
        self.parts.accepting.store_submitted()
        return self.store.message_at(found[0][0].commit_log_offset)

    def end(self, half, is_commit: bool) -> MessageError | None:
        """Why not, or None. Raises LookupError when it has ended before."""
        version = self.transactions.undecided_version(half)
        if version is None:
            raise LookupError
        found: list = []
        (self.transactions.commit if is_commit else self.transactions.roll_back)(version, found.append)
        self.parts.accepting.store_submitted()
        return found[0]

    def commit(self, half):
        return self.end(half, True)

    def roll_back(self, half):
        return self.end(half, False)

    def check(self, after_ms: int = 0) -> int:
        self.clock.now_ms += after_ms
        return self.transactions.checks.carry_out("0", self.clock()).count

    def delivered(self) -> list[bytes]:
        return bodies(self.store)

    def restart(self, *, is_kill: bool) -> None:
        self.transactions._ops.stop()
        if is_kill:
            abandon(self.store)
        else:
            self.store.close()
        clock = self.clock
        self.parts = BrokerParts(self.folder, clock=clock)
        self.parts.offsets.load()
        self.transactions.recover()

    async def tidied(self) -> None:
        """As after two rounds of the loop, offsets saved."""
        await asyncio.sleep(OPS_WRITTEN_S)
        await self.transactions.tidy()
        await self.transactions.tidy()
        await self.parts.offsets.save()

    def close(self) -> None:
        self.transactions._ops.stop()
        self.parts.close()


@pytest.fixture
async def broker(tmp_path):
    broker = Broker(tmp_path / "store")
    yield broker
    broker.close()


# ends


async def test_a_half_is_not_delivered_before_its_commit(broker):
    half = broker.send(queue_id=2)
    assert bodies(broker.store, HALF_TOPIC) == [b"one"]
    assert broker.delivered() == []

    assert broker.commit(half) is None
    (message,) = read_queue(broker.store, "orders", 2)
    assert (message.body, message.tags, message.prepared_transaction_offset) == (b"one", "paid", half.commit_log_offset)
    assert message.properties["TRAN_MSG"] == "true"


async def test_what_is_rolled_back_is_never_delivered(broker):
    broker.roll_back(broker.send())

    assert broker.delivered() == []
    assert broker.transactions.checks.waiting_count == 0


async def test_an_op_record_follows_the_copy_and_gathers_what_ended_together(broker):
    for half in [broker.send(b"%d" % number) for number in range(3)]:
        broker.commit(half)
    assert bodies(broker.store, OP_HALF_TOPIC) == []

    await asyncio.sleep(OPS_WRITTEN_S)
    assert bodies(broker.store, OP_HALF_TOPIC) == [b"0,1,2,"]


async def test_a_rollback_is_recorded_at_once(broker):
    broker.roll_back(broker.send())
    assert bodies(broker.store, OP_HALF_TOPIC) == [b"0,"]


@pytest.mark.parametrize("first", [True, False], ids=["committed", "rolled back"])
@pytest.mark.parametrize("second", [True, False], ids=["committed", "rolled back"])
async def test_nothing_ends_twice(broker, first, second):
    half = broker.send()
    broker.end(half, first)
    with pytest.raises(LookupError):
        broker.end(half, second)

    assert broker.delivered() == ([b"one"] if first else [])


async def test_an_end_that_could_not_be_stored_can_be_said_again(broker, monkeypatch):
    half = broker.send()
    with monkeypatch.context() as patch:
        patch.setattr(broker.store, "append_batch", _full)
        assert isinstance(broker.commit(half), MessageError)

    assert broker.delivered() == []
    assert broker.commit(half) is None
    assert broker.delivered() == [b"one"]


def _full(drafts):
    raise StoreFull("no space; free some")


async def test_no_more_halves_are_taken_than_memory_bears(broker, monkeypatch):
    monkeypatch.setattr(transactions_module, "UNDECIDED_MAX", 2)
    broker.send()
    half = broker.send()
    with pytest.raises(MessageError, match="wait for their commit"):
        broker.send()

    broker.commit(half)
    broker.send()


# checks


async def test_a_half_is_left_alone_for_its_timeout_then_asked_for_at_every_interval(broker):
    producer = broker.online()
    broker.send()

    assert broker.transactions.checks.next_due_ms == broker.clock() + TIMEOUT_MS
    assert broker.check(TIMEOUT_MS - 1) == 0
    assert broker.check(1) == 1
    assert broker.check(INTERVAL_MS - 1) == 0
    assert broker.check(1) == 1
    assert len(producer.sent) == 2


async def test_a_check_names_the_new_version_and_shows_the_message_as_it_will_be(broker):
    producer = broker.online()
    sent = broker.send(b"body", queue_id=3)
    broker.check(TIMEOUT_MS)

    (command,) = producer.sent
    (_, version) = read_queue(broker.store, HALF_TOPIC)
    assert command.code == RequestCode.CHECK_TRANSACTION_STATE
    assert command.ext_fields == {
        "topic": HALF_TOPIC,
        "tranStateTableOffset": "1",
        "commitLogOffset": str(version.commit_log_offset),
        "msgId": "u1",
        "transactionId": "u1",
        "offsetMsgId": version.offset_message_id,
        "bname": "broker-a",
    }
    shown = decode_message(command.body)
    assert (shown.topic, shown.queue_id, shown.body) == ("orders", 3, b"body")
    assert (shown.queue_offset, shown.commit_log_offset) == (1, version.commit_log_offset)
    assert shown.properties["TRANSACTION_CHECK_TIMES"] == "1"
    assert shown.born_timestamp_ms == sent.born_timestamp_ms


async def test_what_a_check_finds_out_is_delivered_once(broker):
    broker.online()
    half = broker.send()
    broker.check(TIMEOUT_MS)
    (_, version) = read_queue(broker.store, HALF_TOPIC)

    assert broker.commit(version) is None
    with pytest.raises(LookupError):
        broker.commit(half)
    assert broker.delivered() == [b"one"]
    assert broker.check(INTERVAL_MS) == 0


async def test_a_late_commit_may_name_a_version_that_checks_have_replaced(broker):
    broker.online()
    half = broker.send()
    broker.check(TIMEOUT_MS)
    broker.check(INTERVAL_MS)

    assert broker.commit(half) is None
    (message,) = read_queue(broker.store)
    assert message.properties["TRANSACTION_CHECK_TIMES"] == "2"
    assert broker.check(INTERVAL_MS) == 0


async def test_the_producers_of_the_group_are_asked_in_turn(broker):
    producers = [broker.online(), broker.online()]
    stranger = broker.online("another group")
    for number in range(4):
        broker.send(b"%d" % number)
    broker.check(TIMEOUT_MS)

    assert [len(producer.sent) for producer in producers] == [2, 2]
    assert stranger.sent == []


async def test_a_producer_that_takes_no_bytes_is_passed_over(broker):
    stuck, gone, ready = broker.online(), broker.online(), broker.online()
    stuck.is_write_paused, gone.is_open = True, False
    for number in range(3):
        broker.send(b"%d" % number)
    broker.check(TIMEOUT_MS)

    assert (len(stuck.sent), len(ready.sent)) == (0, 3)


async def test_without_a_producer_a_half_waits_and_nothing_is_counted(broker):
    broker.send()
    for _ in range(TIMES_MAX + 5):
        assert broker.check(INTERVAL_MS) == 0

    assert bodies(broker.store, HALF_TOPIC) == [b"one"]
    producer = broker.online()
    broker.check(INTERVAL_MS)
    assert decode_message(producer.sent[0].body).properties["TRANSACTION_CHECK_TIMES"] == "1"


async def test_many_that_wait_for_a_producer_are_looked_at_less_often(broker, monkeypatch):
    monkeypatch.setattr(check_back_module, "IDLE_LOOKS_PER_S", 10)
    for number in range(100):
        broker.send(b"%d" % number)
    broker.check(TIMEOUT_MS)

    assert broker.transactions.checks.next_due_ms == broker.clock() + INTERVAL_MS + 10_000


async def test_a_half_may_ask_to_be_left_alone_for_longer(broker):
    broker.online()
    broker.send(CHECK_IMMUNITY_TIME_IN_SECONDS="60")

    assert broker.check(59_999) == 0
    assert broker.check(1) == 1


async def test_after_so_many_checks_it_is_given_up(broker):
    broker.online()
    half = broker.send()
    assert [broker.check(INTERVAL_MS) for _ in range(TIMES_MAX + 1)] == [1] * (TIMES_MAX + 1)

    assert broker.check(INTERVAL_MS) == 0
    assert bodies(broker.store, CHECK_MAX_TIME_TOPIC) == [b"one"]
    with pytest.raises(LookupError):
        broker.commit(half)
    assert broker.delivered() == []


async def test_what_is_older_than_messages_are_kept_is_given_up_also_without_a_producer(broker):
    broker.send()
    broker.check(KEPT_MS)
    assert bodies(broker.store, CHECK_MAX_TIME_TOPIC) == []

    broker.check(INTERVAL_MS)
    assert bodies(broker.store, CHECK_MAX_TIME_TOPIC) == [b"one"]


async def test_what_was_given_up_can_be_resumed_once(broker):
    producer = broker.online()
    broker.send(TRANSACTION_CHECK_TIMES="15")
    broker.check(TIMEOUT_MS)
    (record,) = read_queue(broker.store, CHECK_MAX_TIME_TOPIC)
    answers: list = []
    broker.transactions.resume(record, answers.append)
    broker.parts.accepting.store_submitted()
    with pytest.raises(MessageError, match="resumed before"):
        broker.transactions.resume(record, answers.append)

    assert len(answers) == 1
    assert broker.check(TIMEOUT_MS) == 1
    assert decode_message(producer.sent[0].body).properties["TRANSACTION_CHECK_TIMES"] == "1"
    assert broker.commit(read_queue(broker.store, HALF_TOPIC)[-1]) is None
    assert broker.delivered() == [b"one"]


async def test_only_what_was_given_up_can_be_resumed(broker):
    with pytest.raises(MessageError, match="was given up"):
        broker.transactions.resume(broker.send(), print)


async def test_the_check_of_a_full_disk_is_made_up_for(broker, monkeypatch):
    producer = broker.online()
    broker.send()
    with monkeypatch.context() as patch:
        patch.setattr(broker.store, "append_batch", _full)
        with pytest.raises(StoreFull):
            broker.check(TIMEOUT_MS)

    assert producer.sent == []
    assert broker.check(INTERVAL_MS) == 1


async def test_of_a_check_that_a_full_disk_cut_short_each_half_has_one_version(broker, monkeypatch):
    producer = broker.online()
    first, _ = broker.send(b"one"), broker.send(b"two")
    append, calls = broker.store.append_batch, []

    def refuses_all_then_is_full_after_one(drafts):
        calls.append(len(drafts))
        if len(drafts) > 1:
            raise RecordRefused("one of them can never be stored")
        return append(drafts) if len(calls) == 2 else _full(drafts)

    with monkeypatch.context() as patch:
        patch.setattr(broker.store, "append_batch", refuses_all_then_is_full_after_one)
        with pytest.raises(StoreFull):
            broker.check(TIMEOUT_MS)

    assert len(producer.sent) == 1
    assert len(broker.transactions._undecided) == 2
    broker.commit(first)
    assert broker.transactions.undecided_version(first) is None


async def test_a_clock_that_is_set_back_delays_no_check(broker):
    broker.online()
    broker.send()
    broker.clock.now_ms -= 86_400_000

    assert broker.check() == 0
    assert broker.check(TIMEOUT_MS) == 1


async def test_an_unknown_key_of_a_step_is_refused(broker):
    with pytest.raises(KeyError):
        broker.transactions.checks.carry_out("1", broker.clock())


# over the end of a life


@pytest.mark.parametrize("is_kill", [True, False], ids=["kill", "stop"])
async def test_the_next_life_knows_what_is_undecided_and_what_ended(broker, is_kill):
    committed, rolled_back, undecided = (broker.send(body) for body in (b"a", b"b", b"c"))
    broker.commit(committed)
    broker.roll_back(rolled_back)
    broker.restart(is_kill=is_kill)

    for ended in (committed, rolled_back):
        with pytest.raises(LookupError):
            broker.commit(ended)
    assert broker.commit(undecided) is None
    assert broker.delivered() == [b"a", b"c"]


async def test_a_copy_without_its_op_record_is_found_again(broker):
    """The kill falls between the two."""
    half = broker.send()
    broker.commit(half)
    assert bodies(broker.store, OP_HALF_TOPIC) == []
    broker.restart(is_kill=True)

    assert broker.transactions.checks.waiting_count == 0
    await asyncio.sleep(OPS_WRITTEN_S)
    assert bodies(broker.store, OP_HALF_TOPIC) == [b"0,"]


async def test_a_check_without_its_op_record_leaves_one_version(broker):
    broker.online()
    half = broker.send()
    broker.check(TIMEOUT_MS)
    broker.restart(is_kill=True)

    assert broker.transactions.checks.waiting_count == 1
    assert broker.commit(half) is None
    assert broker.delivered() == [b"one"]


async def test_what_was_rolled_back_after_a_check_stays_so(broker):
    broker.online()
    half = broker.send()
    broker.check(TIMEOUT_MS)
    broker.roll_back(half)
    broker.restart(is_kill=True)

    assert broker.transactions.checks.waiting_count == 0


async def test_checks_go_on_where_they_were(broker):
    broker.online()
    broker.send()
    broker.check(TIMEOUT_MS)
    broker.clock.now_ms += 10_000
    broker.restart(is_kill=True)
    producer = broker.online()

    assert broker.check() == 0
    assert broker.transactions.checks.next_due_ms == broker.clock() + INTERVAL_MS - 10_000
    assert broker.check(INTERVAL_MS - 10_000) == 1
    assert decode_message(producer.sent[0].body).properties["TRANSACTION_CHECK_TIMES"] == "2"


async def test_a_start_after_the_clock_was_set_back_waits_no_longer_than_usual(broker):
    broker.send()
    broker.clock.now_ms -= 86_400_000
    broker.restart(is_kill=True)
    broker.online()

    assert broker.check() == 0
    assert broker.check(TIMEOUT_MS) == 1


async def test_progress_is_what_rocketmq_would_go_on_from(broker):
    halves = [broker.send(b"%d" % number) for number in range(4)]
    for half in halves[:2]:
        broker.commit(half)
    await broker.tidied()

    committed = broker.parts.offsets.committed
    assert (committed(GROUP, HALF_TOPIC, 0), committed(GROUP, OP_HALF_TOPIC, 0)) == (2, 1)
    assert broker.transactions.pinned() == halves[2].commit_log_offset


async def test_op_records_stay_needed_as_long_as_they_speak_of_halves_that_do(broker):
    first, second = broker.send(b"a"), broker.send(b"b")
    broker.commit(second)
    await broker.tidied()

    committed = broker.parts.offsets.committed
    assert (committed(GROUP, HALF_TOPIC, 0), committed(GROUP, OP_HALF_TOPIC, 0)) == (0, 0)
    broker.commit(first)
    await broker.tidied()
    assert (committed(GROUP, HALF_TOPIC, 0), committed(GROUP, OP_HALF_TOPIC, 0)) == (2, 2)
    assert broker.transactions.pinned() is None


async def test_progress_does_not_pass_an_end_whose_op_record_is_not_written(broker):
    broker.commit(broker.send())
    await broker.transactions.tidy()
    await broker.transactions.tidy()

    assert not broker.parts.offsets.committed(GROUP, HALF_TOPIC, 0)
    assert broker.transactions.pinned() is not None


async def test_a_broker_without_transactions_leaves_no_trace(broker):
    broker.store.append(draft(b"plain"))
    await broker.tidied()
    await broker.transactions.stop()

    assert broker.parts.offsets.committed(GROUP, HALF_TOPIC, 0) is None
    assert not (broker.folder / "config" / "transactionProgress.json").exists()


async def test_what_others_commit_for_the_group_of_transactions_is_not_believed(broker):
    """Too far in the one queue an undecided half would be forgotten, in the other an ended one would wait again."""
    ended, half = broker.send(b"ended"), broker.send(b"open")
    broker.roll_back(ended)
    await broker.tidied()
    for topic in (HALF_TOPIC, OP_HALF_TOPIC):
        broker.parts.offsets.commit(GROUP, topic, 0, 1_000)
    await broker.parts.offsets.save()
    broker.restart(is_kill=True)

    assert broker.transactions.checks.waiting_count == 1
    with pytest.raises(LookupError):
        broker.commit(ended)
    assert broker.commit(half) is None
    assert broker.delivered() == [b"open"]
    await broker.tidied()
    assert broker.parts.offsets.committed(GROUP, HALF_TOPIC, 0) == 2


async def test_an_old_progress_file_only_costs_reading(broker):
    for number in range(5):
        broker.commit(broker.send(b"%d" % number))
        await asyncio.sleep(0)
    await broker.transactions.stop()
    (broker.folder / "config" / "transactionProgress.json").write_text("{")
    broker.restart(is_kill=True)

    assert broker.transactions.checks.waiting_count == 0
    assert Counter(broker.delivered()) == {b"%d" % number: 1 for number in range(5)}


async def test_a_half_that_holds_up_all_others_is_moved_on(broker, monkeypatch):
    monkeypatch.setattr(transactions_module, "BEHIND_MAX", 10)
    stuck = broker.send(b"stuck", CHECK_IMMUNITY_TIME_IN_SECONDS="3600")
    for number in range(11):
        broker.commit(broker.send(b"%d" % number))
    await broker.tidied()
    await broker.tidied()

    assert broker.parts.offsets.committed(GROUP, HALF_TOPIC, 0) == 12
    assert broker.transactions.checks.next_due_ms == broker.clock() + 3_600_000
    assert broker.commit(stuck) is None
    assert bodies(broker.store)[-1] == b"stuck"
