"""Replies: pushed to who asked, stored, and what the replier hears."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from broker.engine.processors import send_reply_message as send_reply
from broker.engine.processors.send_reply_message import SendReplyMessage
from broker.engine.sending.send_target import SendTarget
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.headers.replies import ReplyMessageHeader
from remoting.wire.headers.send import SendMessageHeader, SendMessageHeaderV2
from remoting.wire.headers.typed import read_header, write_header
from remoting.wire.properties import decode_properties, encode_properties
from remoting.wire.tags import tags_code
from tests.support.broker_parts import BrokerParts, Wire
from tests.support.stores import read_queue
from tests.support.waiting import eventually

REPLY_TOPIC = "local_REPLY_TOPIC"
PROPERTIES = {
    "UNIQ_KEY": "U1",
    "CORRELATION_ID": "C1",
    "REPLY_TO_CLIENT": "asker@1",
    "MSG_TYPE": "reply",
    "TAGS": "done",
}

ADDED = {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}


class Asker(Wire):
    """A client that asked; takes what is pushed as `answers` says."""

    def __init__(self, *answers: ResponseCode) -> None:
        super().__init__()
        self.answers = list(answers)
        self.pushed: list[Command] = []

    async def request(self, command: Command, timeout_ms: int) -> Command:
        self.pushed.append(command)
        if not self.answers:
            raise TimeoutError(f"no answer within {timeout_ms} ms")
        return response(command, self.answers.pop(0), "as it says")


def reply(code: int = RequestCode.SEND_REPLY_MESSAGE_V2, body: bytes = b"42", **changes) -> Command:
    kind = SendMessageHeader if code == RequestCode.SEND_REPLY_MESSAGE else SendMessageHeaderV2
    values = {
        "producer_group": "repliers",
        "topic": REPLY_TOPIC,
        "queue_id": 0,
        "sys_flag": 0,
        "born_timestamp": 1_700_000_000_000,
        "flag": 0,
        "properties": encode_properties(PROPERTIES),
        **changes,
    }
    return Command(code=code, opaque=9, ext_fields=write_header(kind(**values)), body=body)


@pytest.fixture
async def parts(tmp_path: Path):
    parts = BrokerParts(tmp_path / "store")
    yield parts
    parts.close()


@pytest.fixture
def processor(parts):
    return processor_of(parts)


def processor_of(parts: BrokerParts) -> SendReplyMessage:
    return SendReplyMessage(
        target=SendTarget(parts.topics, parts.config),
        members=parts.members,
        accepting=parts.accepting,
        config=parts.config,
        clock=parts.clock,
    )


def asking(parts, *answers: ResponseCode) -> Asker:
    asker = Asker(*answers)
    parts.members.register_producer(Command(code=RequestCode.HEART_BEAT), asker, "asker@1", "askers")
    return asker


async def answer_to(parts, processor, command: Command) -> Command:
    refusal = parts.ask(processor, command)
    if refusal is not None:
        return refusal
    (answer,) = await eventually(lambda: parts.wire.sent)
    return answer


@pytest.mark.parametrize("code", [RequestCode.SEND_REPLY_MESSAGE, RequestCode.SEND_REPLY_MESSAGE_V2])
async def test_a_reply_is_pushed_to_who_asked_and_stored(parts, processor, code) -> None:
    asker = asking(parts, ResponseCode.SUCCESS)

    answer = await answer_to(parts, processor, reply(code, sys_flag=0x301))

    (stored,) = read_queue(parts.store, REPLY_TOPIC, 0)
    assert (stored.body, stored.properties) == (b"42", PROPERTIES | ADDED)
    assert stored.sys_flag == 0x301, "a compressed body stays readable"
    assert parts.store.queue_entry(REPLY_TOPIC, 0, 0)[2] == tags_code("done")
    assert (answer.code, answer.opaque, answer.remark) == (ResponseCode.SUCCESS, 9, None)
    assert answer.ext_fields == {
        "msgId": stored.offset_message_id,
        "queueId": "0",
        "queueOffset": "0",
        "MSG_REGION": "DefaultRegion",
        "TRACE_ON": "true",
    }
    (pushed,) = asker.pushed
    header = read_header(ReplyMessageHeader, pushed.ext_fields)
    assert (pushed.code, pushed.body) == (RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, b"42")
    assert (header.born_host, header.store_host) == (parts.wire.peer, parts.config.address)
    assert header.store_timestamp == parts.clock.now_ms
    assert decode_properties(header.properties) == PROPERTIES | ADDED | {"PUSH_REPLY_TIME": str(parts.clock.now_ms)}


async def test_a_reply_to_nobody_is_stored_and_the_replier_hears_of_it(parts, processor) -> None:
    answer = await answer_to(parts, processor, reply())

    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert answer.remark == "push reply message fail, channel of <asker@1> not found."
    assert len(read_queue(parts.store, REPLY_TOPIC, 0)) == 1


async def test_a_reply_that_names_nobody_is_stored_and_the_replier_hears_of_it(parts, processor) -> None:
    answer = await answer_to(parts, processor, reply(properties=""))

    assert (answer.code, answer.remark) == (
        ResponseCode.SYSTEM_ERROR,
        "reply message properties[REPLY_TO_CLIENT] is null",
    )
    assert len(read_queue(parts.store, REPLY_TOPIC, 0)) == 1


@pytest.mark.parametrize("answers", [[], [ResponseCode.SYSTEM_ERROR]], ids=["is silent", "refuses"])
async def test_the_replier_hears_when_the_asker(parts, processor, answers) -> None:
    asking(parts, *answers)

    answer = await answer_to(parts, processor, reply())

    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert "asker@1" in answer.remark


async def test_an_asker_that_does_not_read_gets_no_more(parts, processor) -> None:
    asker = asking(parts, ResponseCode.SUCCESS)
    asker.is_write_paused = True

    answer = await answer_to(parts, processor, reply())

    assert (answer.code, "does not read" in answer.remark) == (ResponseCode.SYSTEM_ERROR, True)
    assert asker.pushed == []


async def test_replies_are_not_stored_where_that_is_switched_off(tmp_path) -> None:
    parts = BrokerParts(tmp_path / "store", stores_replies=False)
    processor = processor_of(parts)
    asking(parts, ResponseCode.SUCCESS)

    answer = await answer_to(parts, processor, reply())

    assert (answer.code, answer.ext_fields["msgId"]) == (ResponseCode.SUCCESS, "0")
    assert read_queue(parts.store, REPLY_TOPIC, 0) == []
    parts.close()


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"topic": "an illegal topic"}, ResponseCode.INVALID_PARAMETER),
        ({"topic": "SCHEDULE_TOPIC_XXXX"}, ResponseCode.NO_PERMISSION),
        ({"topic": "missing", "default_topic": "nothing"}, ResponseCode.TOPIC_NOT_EXIST),
        ({"queue_id": 77}, ResponseCode.INVALID_PARAMETER),
        ({"body": b"x" * (4 * 1024 * 1024 + 1)}, ResponseCode.MESSAGE_ILLEGAL),
    ],
    ids=["illegal topic", "system topic", "missing topic", "missing queue", "too large"],
)
async def test_a_reply_is_refused_with(parts, processor, changes, code) -> None:
    asker = asking(parts, ResponseCode.SUCCESS)

    answer = await answer_to(parts, processor, reply(**changes))

    assert answer.code == code
    assert asker.pushed == []


@pytest.mark.parametrize("limit", ["PUSHES_MAX", "PUSH_BYTES_MAX"])
async def test_replies_that_nobody_takes_are_bounded(parts, processor, monkeypatch, limit) -> None:
    monkeypatch.setattr(send_reply, limit, 1)
    never: asyncio.Future[Command] = asyncio.get_running_loop().create_future()
    asker = asking(parts)
    asker.request = lambda command, timeout_ms: never
    assert parts.ask(processor, reply()) is None

    assert (await answer_to(parts, processor, reply())).code == ResponseCode.SYSTEM_BUSY

    never.set_exception(ConnectionError("the asker went away"))
    assert (await eventually(lambda: parts.wire.sent))[0].code == ResponseCode.SYSTEM_ERROR
    asking(parts, ResponseCode.SUCCESS)
    assert parts.ask(processor, reply()) is None, "there is room again"


async def test_a_oneway_reply_is_pushed_and_not_answered(parts, processor) -> None:
    asker = asking(parts, ResponseCode.SUCCESS)
    command = reply()
    command.flag = 2
    assert parts.ask(processor, command) is None
    await eventually(lambda: asker.pushed)
    assert parts.wire.sent == []
