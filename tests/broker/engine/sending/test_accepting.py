"""What is submitted during one read: stored together, in order, each with its own outcome."""

from __future__ import annotations

import logging

import pytest

from broker.engine.sending import accepting as accepting_module
from broker.engine.store.errors import RecordRefused, StoreFailed
from remoting.wire.codes import ResponseCode
from remoting.wire.errors import MessageError
from tests.support.broker_parts import BrokerParts
from tests.support.logged import lines_of
from tests.support.stores import bodies, draft


@pytest.fixture
async def parts(tmp_path):
    parts = BrokerParts(tmp_path / "store")
    yield parts
    parts.close()


class Outcomes:
    """Answers by the body they belong to."""

    def __init__(self, parts) -> None:
        self._parts = parts
        self.of: dict[bytes, object] = {}

    def submit(self, body: bytes, properties: dict | None = None, *, waits: bool = True) -> None:
        message = draft(body)
        self._parts.accepting.submit(
            message, properties or {}, waits=waits, answer=lambda result: self.of.__setitem__(body, result)
        )

    def submit_batch(self, *batch: bytes) -> None:
        drafts = [draft(body) for body in batch]
        self._parts.accepting.submit_batch(
            drafts, waits=True, answer=lambda result: self.of.__setitem__(batch[0], result)
        )


@pytest.fixture
def outcomes(parts):
    return Outcomes(parts)


def count_writes(parts, monkeypatch) -> list[int]:
    """How many messages each write took."""
    writes: list[int] = []
    append_batch = parts.store.append_batch

    def counting(drafts):
        writes.append(len(drafts))
        return append_batch(drafts)

    monkeypatch.setattr(parts.store, "append_batch", counting)
    return writes


def test_accepting_stores_a_read_with_one_write_and_in_order(parts, outcomes, monkeypatch):
    writes = count_writes(parts, monkeypatch)
    outcomes.submit(b"1")
    outcomes.submit_batch(b"2", b"3")
    outcomes.submit(b"4")
    assert outcomes.of == {}
    parts.accepting.store_submitted()

    assert writes == [4]
    assert bodies(parts.store) == [b"1", b"2", b"3", b"4"]
    places = {body: [one.queue_offset for one in result] for body, result in outcomes.of.items()}
    assert places == {b"1": [0], b"2": [1, 2], b"4": [3]}


def test_accepting_stores_nothing_twice(parts, outcomes):
    outcomes.submit(b"1")
    parts.accepting.store_submitted()
    parts.accepting.store_submitted()

    assert bodies(parts.store) == [b"1"]


def test_accepting_does_not_let_a_read_grow_without_bound(parts, outcomes, monkeypatch):
    monkeypatch.setattr(accepting_module, "SUBMITTED_BYTES_MAX", 100)
    writes = count_writes(parts, monkeypatch)
    for number in range(5):
        outcomes.submit(b"%d" % number + b"x" * 49)

    assert writes == [2, 2]


def test_accepting_keeps_the_refusal_of_one_from_the_others(parts, outcomes, monkeypatch):
    append_batch = parts.store.append_batch

    def refusing(drafts):
        if any(one.body == b"bad" for one in drafts):
            raise RecordRefused("it does not fit")
        return append_batch(drafts)

    monkeypatch.setattr(parts.store, "append_batch", refusing)
    outcomes.submit(b"1")
    outcomes.submit(b"bad")
    outcomes.submit(b"3")
    parts.accepting.store_submitted()

    assert bodies(parts.store) == [b"1", b"3"]
    refused = outcomes.of[b"bad"]
    assert isinstance(refused, MessageError)
    assert refused.response_code == ResponseCode.MESSAGE_ILLEGAL


def test_accepting_complains_of_a_disk_that_has_failed_once_and_not_for_each_send(parts, outcomes, monkeypatch, caplog):
    def failing(_):
        raise StoreFailed("the disk has failed")

    monkeypatch.setattr(parts.store, "append_batch", failing)
    for number in range(50):
        outcomes.submit(b"%d" % number)
        parts.accepting.store_submitted()

    assert len(outcomes.of) == 50
    assert lines_of(caplog, "remoting", logging.WARNING) == [
        "a message to topic orders was not stored: the disk has failed"
    ]


async def test_accepting_answers_after_the_flush_those_who_wait_and_at_once_those_who_do_not(
    parts, outcomes, monkeypatch
):
    waiting = []
    monkeypatch.setattr(parts.store, "when_flushed", lambda end, callback: waiting.append((end, callback)))
    outcomes.submit(b"waits")
    outcomes.submit(b"does not", waits=False)
    parts.accepting.store_submitted()

    assert list(outcomes.of) == [b"does not"]
    (end, callback) = waiting[0]
    assert end <= parts.store.max_commit_log_offset
    callback(None)
    assert outcomes.of[b"waits"][0].queue_offset == 0


def test_accepting_says_no_to_all_who_wait_when_the_flush_fails(parts, outcomes, monkeypatch):
    monkeypatch.setattr(parts.store, "when_flushed", lambda end, callback: callback(StoreFailed("the disk failed")))
    outcomes.submit(b"1")
    outcomes.submit(b"2")
    parts.accepting.store_submitted()

    assert [str(result) for result in outcomes.of.values()] == ["the disk failed"] * 2


def test_accepting_refuses_at_once_what_is_too_large(parts, outcomes):
    with pytest.raises(MessageError):
        outcomes.submit(b"1", {"k": "ü" * 20_000})
    parts.accepting.store_submitted()

    assert bodies(parts.store) == []
