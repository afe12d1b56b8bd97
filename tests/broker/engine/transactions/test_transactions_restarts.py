"""Transactions over the end of a broker's life, and what their progress keeps."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from broker.engine.transactions import transactions as transactions_module
from broker.engine.transactions.progress import GROUP
from remoting.wire.names import HALF_TOPIC, OP_HALF_TOPIC
from remoting.wire.stored_message import decode_message
from tests.support.stores import bodies, draft
from tests.support.transaction_broker import INTERVAL_MS, OPS_WRITTEN_S, TIMEOUT_MS


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


async def test_a_copy_without_its_op_message_is_found_again(broker):
    """The kill falls between the two."""
    half = broker.send()
    broker.commit(half)
    assert bodies(broker.store, OP_HALF_TOPIC) == []
    broker.restart(is_kill=True)

    assert broker.transactions.checks.waiting_count == 0
    await asyncio.sleep(OPS_WRITTEN_S)
    assert bodies(broker.store, OP_HALF_TOPIC) == [b"0,"]


async def test_a_check_without_its_op_message_leaves_one_version(broker):
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


async def test_op_messages_stay_needed_as_long_as_they_speak_of_halves_that_do(broker):
    first, second = broker.send(b"a"), broker.send(b"b")
    broker.commit(second)
    await broker.tidied()

    committed = broker.parts.offsets.committed
    assert (committed(GROUP, HALF_TOPIC, 0), committed(GROUP, OP_HALF_TOPIC, 0)) == (0, 0)
    broker.commit(first)
    await broker.tidied()
    assert (committed(GROUP, HALF_TOPIC, 0), committed(GROUP, OP_HALF_TOPIC, 0)) == (2, 2)
    assert broker.transactions.pinned() is None


async def test_progress_does_not_pass_an_end_whose_op_message_is_not_written(broker):
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
