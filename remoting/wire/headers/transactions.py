"""Headers of transactions: 37, 39 and 323."""

from __future__ import annotations

from remoting.wire.headers.typed import Header, Int32, Int64


class EndTransactionHeader(Header, kw_only=True):
    """`EndTransactionRequestHeader`, 37. `tran_state_table_offset`: the half's queue offset, as the send was answered.

    `commit_or_rollback`: 8 commit, 12 rollback, 0 unknown. `msg_id`: the unique key.
    """

    topic: str | None = None
    producer_group: str
    tran_state_table_offset: Int64
    commit_log_offset: Int64
    commit_or_rollback: Int32
    from_transaction_check: bool | None = None
    msg_id: str
    transaction_id: str | None = None
    bname: str | None = None


class CheckTransactionStateHeader(Header, kw_only=True):
    """`CheckTransactionStateRequestHeader`, 39. `msg_id`, `transaction_id`: the unique key."""

    topic: str | None = None
    tran_state_table_offset: Int64
    commit_log_offset: Int64
    msg_id: str | None = None
    transaction_id: str | None = None
    offset_msg_id: str | None = None
    bname: str | None = None


class ResumeCheckHeader(Header, kw_only=True):
    """`ResumeCheckHalfMessageRequestHeader`, 323. `msg_id`: the offset message id."""

    topic: str | None = None
    msg_id: str
