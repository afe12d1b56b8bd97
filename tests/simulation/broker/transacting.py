"""Transactions: half messages, their ends said once, twice or never, and the broker's questions."""

from __future__ import annotations

from collections.abc import Callable

from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.headers.transactions import CheckTransactionStateHeader, EndTransactionHeader
from remoting.wire.headers.typed import read_header, write_header
from remoting.wire.message_id import decode_offset_message_id
from remoting.wire.properties import Property
from remoting.wire.stored_message import TRANSACTION_COMMIT, TRANSACTION_PREPARED, TRANSACTION_ROLLBACK
from tests.simulation.broker.model import Half
from tests.simulation.broker.sending import send_entry
from tests.simulation.broker.world import SENDERS, World

UNKNOWN = 0


def operations(world: World) -> list[tuple[int, Callable[[], None]]]:
    return [
        (6, lambda: send_half(world)),
        (6, lambda: end_some(world)),
        (6, lambda: answer_checks(world)),
    ]


def send_half(world: World) -> None:
    place, entry = world.any_place(), world.new_entry()
    key = f"KEY{entry.body}"
    properties = {Property.TRAN_MSG: "true", Property.PGROUP: SENDERS, Property.UNIQ_KEY: key}
    answer = send_entry(world, place, entry, properties, TRANSACTION_PREPARED)
    _, commit_log_offset = decode_offset_message_id(answer.ext_fields["msgId"])
    world.model.halves[key] = Half(place, entry, int(answer.ext_fields["queueOffset"]), commit_log_offset)


def end_some(world: World) -> None:
    """Also one that ended long ago."""
    if not world.model.halves:
        return
    key = world.chance.choice(sorted(world.model.halves))
    half = world.model.halves[key]
    _end(world, key, half.queue_offset, half.commit_log_offset, is_check=False)


def answer_checks(world: World) -> None:
    """Answers each question of the broker, or stays silent."""
    for client in world.clients.values():
        questions, client.requests = client.requests, []
        for question in questions:
            if question.code != RequestCode.CHECK_TRANSACTION_STATE:
                continue
            header = read_header(CheckTransactionStateHeader, question.ext_fields)
            key = header.transaction_id or ""
            _end(world, key, header.tran_state_table_offset, header.commit_log_offset, is_check=True)


def _end(world: World, key: str, queue_offset: int, commit_log_offset: int, *, is_check: bool) -> None:
    outcome = world.chance.choice([TRANSACTION_COMMIT, TRANSACTION_ROLLBACK, UNKNOWN])
    header = EndTransactionHeader(
        producer_group=SENDERS,
        tran_state_table_offset=queue_offset,
        commit_log_offset=commit_log_offset,
        commit_or_rollback=outcome,
        from_transaction_check=is_check,
        msg_id=key,
        transaction_id=key,
    )
    answer = world.client.answer(world.client.send(RequestCode.END_TRANSACTION, **write_header(header)))
    if outcome == UNKNOWN:
        assert answer is None
        return
    half = world.model.halves[key]
    assert answer is not None
    assert (answer.code == ResponseCode.SUCCESS) == half.is_open, answer.remark
    if half.is_open and outcome == TRANSACTION_COMMIT:
        world.model.queues[half.place].append(half.entry)
    half.is_open = False
