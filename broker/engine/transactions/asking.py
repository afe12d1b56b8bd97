"""The request that asks a producer (CHECK_TRANSACTION_STATE, 39), and which producer is asked.

Any client of the half's producer group may be asked: groups are taken to share their state. They are asked in turn
(`ProducerManager.getAvailableChannel`).
"""

from __future__ import annotations

import itertools

import msgspec

from broker.engine.groups.members import Client, Members
from broker.engine.store.values import Appended, MessageDraft
from broker.engine.transactions.half import destination
from remoting.wire.codes import RequestCode
from remoting.wire.command import Command
from remoting.wire.headers.transactions import CheckTransactionStateHeader
from remoting.wire.headers.typed import write_header
from remoting.wire.message_id import offset_message_id
from remoting.wire.names import HALF_TOPIC
from remoting.wire.properties import Property, decode_properties, encode_properties
from remoting.wire.stored_message import StoredMessage, encode_message


class ProducerQueue:
    def __init__(self, members: Members) -> None:
        self._members = members
        self._turns = itertools.count()

    def next(self, group: str) -> Client | None:
        """One whose connection takes bytes now, if any does; None when nobody of the group is online."""
        clients = [client for client in self._members.producers(group) if client.connection.is_open]
        if not clients:
            return None
        ready = [client for client in clients if not client.connection.is_write_paused] or clients
        return ready[next(self._turns) % len(ready)]


def check_request(half: StoredMessage, draft: MessageDraft, version: Appended, broker_name: str) -> Command:
    """`draft` is the half's next version, stored as `version`: the producer names that one in its answer.

    The body is the message as it will be: real topic and queue, with the offsets of the half; WAIT is false there, as
    Apache's is.
    """
    place = destination(half)
    if place is None:
        raise ValueError(f"not a half message: {half}")
    header = CheckTransactionStateHeader(
        topic=HALF_TOPIC,
        tran_state_table_offset=version.queue_offset,
        commit_log_offset=version.commit_log_offset,
        msg_id=half.unique_key,
        transaction_id=half.unique_key,
        offset_msg_id=offset_message_id(half.store_host, version.commit_log_offset),
        bname=broker_name,
    )
    message = msgspec.structs.replace(
        half,
        topic=place[0],
        queue_id=place[1],
        queue_offset=version.queue_offset,
        commit_log_offset=version.commit_log_offset,
        properties_text=encode_properties({**decode_properties(draft.properties_text), Property.WAIT: "false"}),
        prepared_transaction_offset=0,
    )
    return Command(
        code=RequestCode.CHECK_TRANSACTION_STATE, ext_fields=write_header(header), body=encode_message(message)
    )
