"""Half messages and END_TRANSACTION (37) as clients ask for them: answers, codes, and what is delivered."""

from __future__ import annotations

import pytest

from broker.engine.processors.end_transaction import EndTransaction
from broker.engine.store.layout import CRC_BYTES, HEADS, crc_property
from broker.engine.transactions.half import CHECK_TIMES_CHARS
from remoting.wire.batch import encode_batch
from remoting.wire.codes import ONEWAY_FLAG, RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.errors import MessageError
from remoting.wire.limits import PROPERTIES_BYTES_MAX
from remoting.wire.message_id import decode_offset_message_id
from remoting.wire.names import HALF_TOPIC
from remoting.wire.properties import encode_properties
from tests.support.broker_parts import BrokerParts
from tests.support.stores import START_MS, bodies, draft, read_queue

COMMIT, ROLLBACK, UNKNOWN = 8, 12, 0
HALF = {"TRAN_MSG": "true", "PGROUP": "p", "UNIQ_KEY": "0A000001"}


@pytest.fixture
async def parts(tmp_path):
    parts = BrokerParts(tmp_path / "store")
    yield parts
    parts.transactions._ops.stop()
    parts.close()


@pytest.fixture
def processor(parts):
    return EndTransaction(store=parts.store, transactions=parts.transactions, config=parts.config, clock=parts.clock)


def send(parts, body=b"one", flag=0, properties=HALF, **fields):
    values = {
        "producerGroup": "p",
        "topic": "orders",
        "queueId": "1",
        "sysFlag": "4",
        "bornTimestamp": str(START_MS),
        "flag": "0",
        "properties": encode_properties(properties),
        **fields,
    }
    processor = parts.send_message()
    command = Command(code=RequestCode.SEND_MESSAGE, flag=flag, ext_fields=values, body=body)
    return parts.ask(processor, command)


def end(parts, processor, sent, decision, flag=0, **fields):
    values = {
        "producerGroup": "p",
        "tranStateTableOffset": sent.ext_fields["queueOffset"],
        "commitLogOffset": str(decode_offset_message_id(sent.ext_fields["msgId"])[1]),
        "commitOrRollback": str(decision),
        "fromTransactionCheck": "false",
        "msgId": sent.ext_fields["transactionId"],
        **fields,
    }
    return parts.ask(processor, Command(code=RequestCode.END_TRANSACTION, flag=flag, ext_fields=values))


# half messages


async def test_a_half_is_answered_with_what_its_end_has_to_name(parts):
    send(parts, properties={})
    send(parts)
    answer = send(parts)

    assert answer.code == ResponseCode.SUCCESS
    assert answer.ext_fields["queueOffset"] == "1"
    assert answer.ext_fields["queueId"] == "1"
    assert answer.ext_fields["transactionId"] == HALF["UNIQ_KEY"]
    place = decode_offset_message_id(answer.ext_fields["msgId"])[1]
    assert parts.store.message_at(place).topic == HALF_TOPIC


async def test_a_half_waits_as_it_was_sent(parts):
    send(parts, properties={**HALF, "TAGS": "paid", "DELAY": "3"})

    (half,) = read_queue(parts.store, HALF_TOPIC)
    assert (half.sys_flag, half.tags, half.born_timestamp_ms) == (0, "paid", START_MS)
    assert (half.properties["REAL_TOPIC"], half.properties["REAL_QID"]) == ("orders", "1")
    assert "DELAY" not in half.properties
    assert bodies(parts.store, "orders", 1) == []


async def test_a_broker_may_refuse_transactions(parts):
    parts.config.rejects_transactions = True
    answer = send(parts)

    assert answer.code == ResponseCode.NO_PERMISSION
    assert answer.remark == "the broker[127.0.0.1] sending transaction message is forbidden"


async def test_a_retry_of_an_old_client_is_an_ordinary_message(parts):
    send(parts, properties={**HALF, "DELAY": "3"}, reconsumeTimes="1")
    assert bodies(parts.store, HALF_TOPIC) == []


async def test_a_half_leaves_room_for_the_count_of_its_checks(parts):
    def begin(value_chars: int) -> str:
        message = draft(topic="orders")
        parts.transactions.begin(message, {**HALF, "k": "v" * value_chars}, print)
        return message.properties_text

    most = PROPERTIES_BYTES_MAX - CRC_BYTES - len(begin(1)) + 1
    begin(most - CHECK_TIMES_CHARS)
    with pytest.raises(MessageError, match="properties"):
        begin(most - CHECK_TIMES_CHARS + 1)


async def test_a_batch_cannot_be_transactional(parts):
    body = encode_batch([(0, b"one", {})])
    answer = send(parts, body, batch="true")

    assert answer.code == ResponseCode.MESSAGE_ILLEGAL
    assert bodies(parts.store, HALF_TOPIC) == []


# their ends


@pytest.mark.parametrize(("decision", "delivered"), [(COMMIT, [b"one"]), (ROLLBACK, [])], ids=["commit", "rollback"])
async def test_an_end_is_answered(parts, processor, decision, delivered):
    answer = end(parts, processor, send(parts), decision)

    assert (answer.code, answer.ext_fields) == (ResponseCode.SUCCESS, {})
    assert bodies(parts.store, "orders", 1) == delivered


async def test_one_that_does_not_know_is_not_answered(parts, processor):
    sent = send(parts)
    assert end(parts, processor, sent, UNKNOWN) is None
    assert end(parts, processor, sent, COMMIT).code == ResponseCode.SUCCESS


async def test_a_oneway_end_counts_and_is_not_answered(parts, processor):
    sent = send(parts)
    before = len(parts.wire.sent)
    end(parts, processor, sent, COMMIT, flag=ONEWAY_FLAG)

    assert len(parts.wire.sent) == before
    assert bodies(parts.store, "orders", 1) == [b"one"]


async def test_the_second_end_is_refused(parts, processor):
    sent = send(parts)
    end(parts, processor, sent, COMMIT)
    answer = end(parts, processor, sent, COMMIT)

    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert "ended before" in answer.remark
    assert bodies(parts.store, "orders", 1) == [b"one"]


REFUSALS = {
    "of another group": ({"producerGroup": "other"}, "The producer group wrong"),
    "of another queue offset": ({"tranStateTableOffset": "7"}, "The transaction state table offset wrong"),
    "of no message": ({"commitLogOffset": "3"}, "Find prepared transaction message failed"),
    "of a negative offset": ({"commitLogOffset": "-1"}, "Find prepared transaction message failed"),
    "of a message beyond the log": ({"commitLogOffset": str(2**40)}, "Find prepared transaction message failed"),
    "of an ordinary message": ({"commitLogOffset": "0"}, "Find prepared transaction message failed"),
    "that is neither commit nor rollback": ({"commitOrRollback": "4"}, "commitOrRollback field wrong"),
    "without a group": ({"producerGroup": None}, "producerGroup"),
    "with garbage for an offset": ({"commitLogOffset": "x"}, "commitLogOffset"),
}


@pytest.mark.parametrize("case", REFUSALS.values(), ids=REFUSALS.keys())
async def test_an_end_is_refused(parts, processor, case):
    fields, words = case
    send(parts, properties={"PGROUP": "p"}, sysFlag="0")
    sent = send(parts)
    given = {name: value for name, value in fields.items() if value is not None}
    left_out = fields.keys() - given.keys()
    values = {"producerGroup": "p", **given}
    for name in left_out:
        values.pop(name, None)

    answer = _ask_without(parts, processor, sent, left_out, values)
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert words in answer.remark
    assert bodies(parts.store, "orders", 1) == [b"one"]
    assert end(parts, processor, sent, COMMIT).code == ResponseCode.SUCCESS


def _ask_without(parts, processor, sent, left_out, values):
    def without(request):
        for name in left_out:
            request.command.ext_fields.pop(name)
        return processor(request)

    return end(parts, without, sent, COMMIT, **values)


async def test_an_end_that_comes_after_the_immunity_that_was_asked_for_waits_for_the_check(parts, processor):
    sent = send(parts, properties={**HALF, "CHECK_IMMUNITY_TIME_IN_SECONDS": "10"})
    parts.clock.now_ms += 10_001

    for decision in (COMMIT, ROLLBACK):
        assert end(parts, processor, sent, decision).code == ResponseCode.ILLEGAL_OPERATION
    assert bodies(parts.store, "orders", 1) == []
    answer = end(parts, processor, sent, COMMIT, fromTransactionCheck="true")
    assert answer.code == ResponseCode.SUCCESS


async def test_an_end_within_that_immunity_counts(parts, processor):
    sent = send(parts, properties={**HALF, "CHECK_IMMUNITY_TIME_IN_SECONDS": "10"})
    parts.clock.now_ms += 10_000
    assert end(parts, processor, sent, COMMIT).code == ResponseCode.SUCCESS


async def test_an_end_without_that_wish_is_never_too_late(parts, processor):
    sent = send(parts)
    parts.clock.now_ms += 86_400_000
    assert end(parts, processor, sent, COMMIT).code == ResponseCode.SUCCESS


async def test_a_half_message_inside_the_body_of_another_message_is_none(parts, processor):
    """Else who can send could commit it to any topic, those of the broker too, in the place of a true one."""
    true = send(parts)
    record = parts.store.record_at(decode_offset_message_id(true.ext_fields["msgId"])[1])
    place = parts.store.max_commit_log_offset + HEADS[0].size
    forged = bytearray(record[:-CRC_BYTES])
    forged[28:36] = place.to_bytes(8, "big")
    parts.store.append(draft(bytes(forged) + crc_property(forged)))
    assert parts.store.message_at(place).topic == HALF_TOPIC, "as a record it is sound"

    answer = end(parts, processor, true, COMMIT, commitLogOffset=str(place))
    assert (answer.code, bodies(parts.store)) == (ResponseCode.SYSTEM_ERROR, [bytes(forged) + crc_property(forged)])
    assert end(parts, processor, true, COMMIT).code == ResponseCode.SUCCESS
