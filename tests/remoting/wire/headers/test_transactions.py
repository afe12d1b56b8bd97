"""Headers of transactions as RocketMQ's Java client and broker write them."""

from __future__ import annotations

import pytest

from remoting.wire.errors import HeaderError
from remoting.wire.headers.transactions import CheckTransactionStateHeader, EndTransactionHeader
from remoting.wire.headers.typed import read_header, write_header

END = {
    "topic": "orders",
    "producerGroup": "p",
    "tranStateTableOffset": "17",
    "commitLogOffset": "1000",
    "commitOrRollback": "8",
    "fromTransactionCheck": "true",
    "msgId": "0A00",
    "transactionId": "0A00",
    "bname": "broker-a",
}


def test_an_end_is_read_and_written_alike() -> None:
    header = read_header(EndTransactionHeader, END)

    assert (header.tran_state_table_offset, header.commit_log_offset, header.commit_or_rollback) == (17, 1000, 8)
    assert header.from_transaction_check is True
    assert write_header(header) == END


def test_an_end_of_a_client_of_4_9_has_fewer_fields() -> None:
    fields = {name: text for name, text in END.items() if name not in ("topic", "bname", "fromTransactionCheck")}
    header = read_header(EndTransactionHeader, fields)

    assert (header.topic, header.bname, header.from_transaction_check) == (None, None, None)


@pytest.mark.parametrize(
    "name", ["producerGroup", "tranStateTableOffset", "commitLogOffset", "commitOrRollback", "msgId"]
)
def test_an_end_of_transaction_without_a_required_field_is_refused(name: str) -> None:
    with pytest.raises(HeaderError, match=name):
        read_header(EndTransactionHeader, {key: text for key, text in END.items() if key != name})


def test_a_transaction_check_leaves_out_unknown_fields() -> None:
    header = CheckTransactionStateHeader(tran_state_table_offset=1, commit_log_offset=2)
    assert write_header(header) == {"tranStateTableOffset": "1", "commitLogOffset": "2"}
