from __future__ import annotations

from itertools import count

import pytest

from remoting.client.batches import batches, split_result
from remoting.client.outgoing import Message
from remoting.client.send_result import SendResult, SendStatus
from remoting.wire.batch import decode_batch
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.errors import MessageError
from remoting.wire.properties import decode_properties

QUEUE = MessageQueue("T", "a", 1)


def ids() -> object:
    numbers = count(1)
    return lambda: f"id-{next(numbers)}"


def test_a_batch_holds_every_message_with_its_own_id() -> None:
    messages = [Message(b"one", tags="a", flag=1), Message(b"two", keys="k", properties={"p": "v"})]
    (batch,) = batches("T", messages, ids())  # type: ignore[arg-type]
    assert batch.is_batch
    assert batch.sys_flag == 0
    assert batch.message_id == "id-1,id-2"
    first, second = decode_batch(batch.body)
    assert (first.flag, first.body, decode_properties(first.properties_text)) == (
        1,
        b"one",
        {"UNIQ_KEY": "id-1", "TAGS": "a"},
    )
    assert decode_properties(second.properties_text) == {"UNIQ_KEY": "id-2", "KEYS": "k", "p": "v"}


def test_messages_are_spread_over_as_few_requests_as_fit_and_keep_their_order() -> None:
    messages = [Message(bytes([number]) * 300) for number in range(10)]
    parts = batches("T", messages, ids(), bytes_max=1100)  # type: ignore[arg-type]
    assert all(len(part.body) <= 1100 for part in parts)
    bodies = [[entry.body[0] for entry in decode_batch(part.body)] for part in parts]
    assert bodies == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]


def test_a_part_is_filled_to_the_last_byte() -> None:
    one_bytes = len(batches("T", [Message(b"x")], lambda: "i")[0].body)
    assert len(batches("T", [Message(b"x")] * 3, lambda: "i", bytes_max=3 * one_bytes)) == 1
    assert len(batches("T", [Message(b"x")] * 3, lambda: "i", bytes_max=3 * one_bytes - 1)) == 2


def test_a_long_message_is_not_compressed_in_a_batch() -> None:
    (batch,) = batches("T", [Message(b"x" * 10_000)], lambda: "i")
    assert decode_batch(batch.body)[0].body == b"x" * 10_000


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([], "the batch for topic 'T' is empty"),
        ([Message(b"x"), Message(b"")], "the body is empty"),
        ([Message(b"x"), Message(b"x" * 1100)], "does not fit into a batch of 1100"),
        ([Message(b"x", properties={"KEYS": "k"})], "reserved"),
    ],
    ids=["empty", "empty body", "too large", "reserved"],
)
def test_a_batch_with_one_bad_message_is_refused_as_a_whole(messages: list[Message], reason: str) -> None:
    with pytest.raises(MessageError, match=reason):
        batches("T", messages, lambda: "i", bytes_max=1100)


def test_the_answer_to_a_batch_becomes_one_result_per_message() -> None:
    result = SendResult("a,b,c", "X,Y,Z", QUEUE, 7, SendStatus.SEND_OK)
    assert split_result(result) == [
        SendResult("a", "X", QUEUE, 7, SendStatus.SEND_OK),
        SendResult("b", "Y", QUEUE, 8, SendStatus.SEND_OK),
        SendResult("c", "Z", QUEUE, 9, SendStatus.SEND_OK),
    ]


def test_a_broker_that_gives_one_id_for_all_is_understood() -> None:
    results = split_result(SendResult("a,b", "X", QUEUE, 7, SendStatus.SEND_OK))
    assert [result.offset_message_id for result in results] == ["X", "X"]


def test_a_delayed_message_is_refused_in_a_batch() -> None:
    with pytest.raises(MessageError, match="cannot be delayed"):
        batches("T", [Message(b"x"), Message(b"x", delay_s=1)], iter("ab").__next__)
