"""Ends of transactions on a real store: what is delivered, once."""

from __future__ import annotations

import asyncio

import pytest

from broker.engine.store.errors import StoreFull
from broker.engine.transactions import transactions as transactions_module
from remoting.wire.errors import MessageError
from remoting.wire.names import HALF_TOPIC, OP_HALF_TOPIC
from tests.support.stores import bodies, read_queue
from tests.support.transaction_broker import OPS_WRITTEN_S


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


async def test_an_op_message_follows_the_copy_and_gathers_what_ended_together(broker):
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
