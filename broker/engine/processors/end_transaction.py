"""END_TRANSACTION (37): a producer commits a half message, rolls it back, or does not know (`EndTransactionProcessor`).

The checks and their order are RocketMQ's. An end that is answered with SUCCESS is as safe as any send. A second commit
is refused; Apache's broker would deliver the message again and answer SUCCESS.
"""

from __future__ import annotations

from collections.abc import Callable

from broker.engine.config import BrokerConfig
from broker.engine.serving.requests import Request
from broker.engine.store.message_store import MessageStore
from broker.engine.transactions.half import destination, immunity_ms
from broker.engine.transactions.transactions import OnEnded, Transactions
from remoting.wire.codes import ResponseCode
from remoting.wire.command import response
from remoting.wire.errors import MessageError
from remoting.wire.headers.transactions import EndTransactionHeader
from remoting.wire.headers.typed import read_header
from remoting.wire.properties import Property
from remoting.wire.stored_message import TRANSACTION_COMMIT, TRANSACTION_ROLLBACK, StoredMessage

NOT_DECIDED = 0


class EndTransaction:
    """Processor of commits and rollbacks."""

    def __init__(
        self, *, store: MessageStore, transactions: Transactions, config: BrokerConfig, clock: Callable[[], int]
    ) -> None:
        """`clock`: ms since the epoch."""
        self._store = store
        self._config = config
        self._clock = clock
        self._undecided_version = transactions.undecided_version
        self._ends: dict[int, Callable[[StoredMessage, OnEnded], None]] = {
            TRANSACTION_COMMIT: transactions.commit,
            TRANSACTION_ROLLBACK: transactions.roll_back,
        }

    def __call__(self, request: Request) -> None:
        """Ends the transaction; the answer is sent after the flush. A producer that does not know the state gets none.

        Raises WireError with the code to answer.
        """
        header = read_header(EndTransactionHeader, request.command.ext_fields)
        if header.commit_or_rollback == NOT_DECIDED:
            return
        end = self._ends.get(header.commit_or_rollback)
        if end is None:
            raise MessageError(
                f"commitOrRollback field wrong: {header.commit_or_rollback} is neither 0, 8 (commit) nor 12 (rollback)",
                ResponseCode.SYSTEM_ERROR,
            )
        half = self._checked(header)
        version = self._undecided_version(half)
        if version is None:
            raise MessageError(
                f"the transaction of half message {half.queue_offset} has ended before; it cannot be ended again",
                ResponseCode.SYSTEM_ERROR,
            )
        end(version, _answering(request))

    def _checked(self, header: EndTransactionHeader) -> StoredMessage:
        """Returns the half message that the header names. Raises MessageError."""
        half = self._store.queued_message_at(header.commit_log_offset)
        if half is None or destination(half) is None:
            raise MessageError(
                f"Find prepared transaction message failed: none begins at commitLogOffset {header.commit_log_offset}",
                ResponseCode.SYSTEM_ERROR,
            )
        if not header.from_transaction_check and self._is_late(half):
            raise MessageError(
                "the message's immunity time (CHECK_IMMUNITY_TIME_IN_SECONDS) is over:"
                " wait for the broker's check and answer that",
                ResponseCode.ILLEGAL_OPERATION,
            )
        if half.properties.get(Property.PGROUP) != header.producer_group:
            raise MessageError(
                f"The producer group wrong: {header.producer_group} did not send this message",
                ResponseCode.SYSTEM_ERROR,
            )
        if half.queue_offset != header.tran_state_table_offset:
            raise MessageError(
                f"The transaction state table offset wrong: the message has {half.queue_offset},"
                f" not {header.tran_state_table_offset}",
                ResponseCode.SYSTEM_ERROR,
            )
        return half

    def _is_late(self, half: StoredMessage) -> bool:
        """Returns whether the immunity time that the message asked for is over."""
        if Property.CHECK_IMMUNITY_TIME_IN_SECONDS not in half.properties:
            return False
        return self._clock() - half.born_timestamp_ms > immunity_ms(
            half.properties, self._config.transaction_timeout_ms
        )


def _answering(request: Request) -> OnEnded:
    """Returns the callback that answers the request."""
    command, connection = request.command, request.connection

    def answer(error: MessageError | None) -> None:
        if command.is_oneway:
            return
        if error is None:
            connection.send(response(command, ResponseCode.SUCCESS))
        else:
            connection.send(response(command, error.response_code, str(error)))

    return answer
