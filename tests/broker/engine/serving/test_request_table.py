"""The request table: every request gets its answer, and none of them harms the connection or the next one."""

from __future__ import annotations

import logging

import pytest

from broker.engine.serving.request_table import RequestTable
from remoting.complaints import ComplaintLog
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.errors import BodyError, HeaderError, MessageError
from tests.support.broker_parts import Wire
from tests.support.logged import lines_of, records_of

CODE = 34
LOGGER = "remoting.complaints"


def table_with(processor) -> RequestTable:
    table = RequestTable("broker")
    table.fill({CODE: processor})
    return table


def ask(table: RequestTable, *commands: Command) -> list[Command]:
    wire = Wire()
    table.requests_received(wire, list(commands))
    return wire.sent


def test_an_unknown_code_gets_rocketmqs_own_answer() -> None:
    (answer,) = ask(RequestTable("broker"), Command(code=29_999, opaque=7))
    assert (answer.code, answer.opaque) == (ResponseCode.REQUEST_CODE_NOT_SUPPORTED, 7)
    assert answer.remark == " request type 29999 not supported"


@pytest.mark.parametrize(
    ("error", "code", "remark"),
    [
        (MessageError("no such topic", ResponseCode.TOPIC_NOT_EXIST), ResponseCode.TOPIC_NOT_EXIST, "no such topic"),
        (HeaderError("field queueId"), ResponseCode.SYSTEM_ERROR, "field queueId"),
        (BodyError("no JSON"), ResponseCode.SYSTEM_ERROR, "no JSON"),
    ],
    ids=["a rule", "a header", "a body"],
)
def test_a_refusal_becomes_the_answer(error, code, remark) -> None:
    def refuse(_):
        raise error

    (answer,) = ask(table_with(refuse), Command(code=CODE))
    assert (answer.code, answer.remark) == (code, remark)


def test_a_mistake_of_ours_becomes_a_system_error_and_the_next_request_is_answered(caplog) -> None:
    def fail(request):
        if request.command.opaque == 1:
            raise ZeroDivisionError("ours")
        return response(request.command, ResponseCode.SUCCESS)

    first, second = ask(table_with(fail), Command(code=CODE, opaque=1), Command(code=CODE, opaque=2))
    assert (first.code, first.remark) == (ResponseCode.SYSTEM_ERROR, "ZeroDivisionError: ours")
    assert second.code == ResponseCode.SUCCESS
    (record,) = records_of(caplog, LOGGER)
    assert record.levelno == logging.ERROR
    assert record.exc_info is not None
    assert Wire.peer in record.getMessage()


@pytest.mark.parametrize("code", [CODE, 29_999], ids=["known", "unknown"])
def test_a_oneway_request_is_never_answered(code) -> None:
    table = table_with(lambda request: response(request.command, ResponseCode.SUCCESS))
    assert ask(table, Command(code=code, flag=2)) == []


def test_what_one_read_left_to_do_is_done_after_its_last_request() -> None:
    order: list[object] = []
    table = RequestTable("broker")
    table.fill({CODE: lambda request: order.append(request.command.opaque)}, after_read=[lambda: order.append("done")])
    ask(table, Command(code=CODE, opaque=1), Command(code=CODE, opaque=2))
    assert order == [1, 2, "done"]


def test_stages_are_passed_in_their_order_before_the_processor() -> None:
    order: list[str] = []
    table = RequestTable("broker")
    table.fill(
        {CODE: lambda _: order.append("processor")},
        stages=[lambda _: order.append("first"), lambda _: order.append("second")],
    )
    ask(table, Command(code=CODE))
    assert order == ["first", "second", "processor"]


def test_what_a_stage_refuses_reaches_neither_the_next_one_nor_the_processor() -> None:
    def refuse(_):
        raise MessageError("not you", ResponseCode.NO_PERMISSION)

    later: list[str] = []
    table = RequestTable("broker")
    table.fill({CODE: lambda _: later.append("processor")}, stages=[refuse, lambda _: later.append("stage")])
    (answer,) = ask(table, Command(code=CODE))
    assert (answer.code, answer.remark, later) == (ResponseCode.NO_PERMISSION, "not you", [])


def test_the_same_complaint_about_the_same_host_is_logged_once_a_minute_with_its_count(caplog) -> None:
    now_s = [0.0]
    table = RequestTable("broker", ComplaintLog(clock=lambda: now_s[0]))

    def unreadable(_):
        raise BodyError("no JSON")

    table.fill({CODE: unreadable})
    for _ in range(10):  # of ten connections
        ask(table, *[Command(code=29_999)] * 10, *[Command(code=code) for code in range(20_000, 20_010)])
        ask(table, *[Command(code=CODE)] * 10)
    assert len(records_of(caplog, LOGGER)) == 2
    now_s[0] = 60.0
    ask(table, Command(code=29_998), Command(code=CODE))
    unknown, body = lines_of(caplog, LOGGER)[2:]
    assert unknown.startswith("broker: 127.0.0.1:40000: unknown request code 29998; ")
    assert "199 more" in unknown
    assert "no JSON" in body
    assert "99 more" in body


def test_a_lost_connection_is_forgotten_by_all() -> None:
    table, lost = RequestTable("broker"), []
    table.fill({}, on_connection_lost=[lost.append, lost.append])
    wire = Wire()
    table.disconnected(wire, None)
    assert lost == [wire, wire]
