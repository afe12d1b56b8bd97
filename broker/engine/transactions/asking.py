"""The request CHECK_TRANSACTION_STATE (39), and the choice of the producer that it is sent to.

Any client of the half message's producer group may be asked: the members of a group are taken to share their state.
They are asked in turn (`ProducerManager.getAvailableChannel`).
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
    """Chooses the members of a producer group in turn."""

    def __init__(self, members: Members) -> None:
        self._members = members
        self._turns = itertools.count()

    def next(self, group: str) -> Client | None:
        """Returns a member of the group, if possible one whose connection takes bytes now; None when none is online."""
        clients = [client for client in self._members.producers(group) if client.connection.is_open]
        if not clients:
            return None
        ready = [client for client in clients if not client.connection.is_write_paused] or clients
        return ready[next(self._turns) % len(ready)]


def check_request(half: StoredMessage, draft: MessageDraft, version: Appended, broker_name: str) -> Command:
    """Returns the request for `half`, whose next version `draft` is stored as `version`: the answer names that version.

    The body is the message as consumers will get it, with its real topic and queue, but with the half's offsets; WAIT
    is false in it, as in Apache's.
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
