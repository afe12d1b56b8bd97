"""RESUME_CHECK_HALF_MESSAGE (323): what an operator hears."""

from __future__ import annotations

import pytest

from broker.engine.processors.resume_check_half_message import ResumeCheckHalfMessage
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.message_id import offset_message_id
from remoting.wire.names import CHECK_MAX_TIME_TOPIC, HALF_TOPIC
from remoting.wire.properties import encode_properties
from tests.support.broker_parts import BrokerParts
from tests.support.stores import bodies, draft

HOST = ("127.0.0.1", 10911)


@pytest.fixture
async def parts(tmp_path):
    parts = BrokerParts(tmp_path / "store")
    yield parts
    parts.close()


def ask(parts, message_id: str) -> Command:
    fields = {"topic": CHECK_MAX_TIME_TOPIC, "msgId": message_id}
    command = Command(code=RequestCode.RESUME_CHECK_HALF_MESSAGE, ext_fields=fields)
    return parts.ask(ResumeCheckHalfMessage(parts.store, parts.transactions), command)


async def test_a_transaction_that_was_given_up_is_asked_for_again(parts):
    properties = {"REAL_TOPIC": "orders", "REAL_QID": "0", "UNIQ_KEY": "u1", "TRAN_MSG": "true"}
    record = parts.store.append(draft(b"one", CHECK_MAX_TIME_TOPIC, properties_text=encode_properties(properties)))

    answer = ask(parts, offset_message_id(HOST, record.commit_log_offset))
    assert answer.code == ResponseCode.SUCCESS
    assert bodies(parts.store, HALF_TOPIC) == [b"one"]
    assert parts.transactions.checks.waiting_count == 1


@pytest.mark.parametrize("message_id", ["nonsense", offset_message_id(HOST, 4_711), offset_message_id(HOST, 0)])
async def test_what_was_not_given_up_is_refused(parts, message_id):
    parts.store.append(draft(b"plain"))

    answer = ask(parts, message_id)
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert answer.remark
    assert bodies(parts.store, HALF_TOPIC) == []
