"""RESUME_CHECK_HALF_MESSAGE (323): the check of a transaction that was given up is resumed (`AdminBrokerProcessor`)."""

from __future__ import annotations

from broker.engine.serving.requests import Request
from broker.engine.store.message_store import MessageStore
from broker.engine.store.values import Appended
from broker.engine.transactions.transactions import Transactions
from remoting.wire.codes import ResponseCode
from remoting.wire.command import response
from remoting.wire.errors import MessageError
from remoting.wire.headers.transactions import ResumeCheckHeader
from remoting.wire.headers.typed import read_header
from remoting.wire.message_id import decode_offset_message_id


class ResumeCheckHalfMessage:
    def __init__(self, store: MessageStore, transactions: Transactions) -> None:
        self._store = store
        self._transactions = transactions

    def __call__(self, request: Request) -> None:
        """Appends the half message anew, and returns None: the answer is sent after the flush.

        Raises WireError with the code to answer.
        """
        command, connection = request.command, request.connection
        header = read_header(ResumeCheckHeader, command.ext_fields)
        _, commit_log_offset = decode_offset_message_id(header.msg_id)
        record = self._store.queued_message_at(commit_log_offset)
        if record is None:
            raise MessageError(f"no message has the id {header.msg_id}", ResponseCode.SYSTEM_ERROR)

        def answer(result: list[Appended] | MessageError) -> None:
            if command.is_oneway:
                return
            if isinstance(result, MessageError):
                connection.send(response(command, result.response_code, str(result)))
            else:
                connection.send(response(command, ResponseCode.SUCCESS))

        self._transactions.resume(record, answer)
