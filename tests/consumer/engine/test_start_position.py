from __future__ import annotations

from datetime import UTC, datetime

import pytest

from consumer.engine.start_position import ConsumeFrom, StartRule, start_position, start_rule
from remoting.client.errors import ClientError
from remoting.wire.bodies.message_queue import MessageQueue

ORDERS = MessageQueue("orders", "broker-a", 0)
RETRY = MessageQueue("%RETRY%billing", "broker-a", 0)
LAST, FIRST = StartRule(ConsumeFrom.LAST), StartRule(ConsumeFrom.FIRST)
AT_NOON = StartRule(ConsumeFrom.TIMESTAMP, 43_200_000)


class Answers:
    """A queue that ends at 90, and whose messages from noon on begin at 40."""

    async def max_offset(self, queue: MessageQueue) -> int:
        return 90

    async def offset_at(self, queue: MessageQueue, timestamp_ms: int) -> int:
        assert timestamp_ms == AT_NOON.timestamp_ms
        return 40


class Silence:
    async def max_offset(self, queue: MessageQueue) -> int:
        raise ClientError("no answer")

    async def offset_at(self, queue: MessageQueue, timestamp_ms: int) -> int:
        raise ClientError("no answer")


@pytest.mark.parametrize(
    ("queue", "stored", "rule", "offset"),
    [
        pytest.param(ORDERS, 17, LAST, 17, id="a stored offset wins over last"),
        pytest.param(ORDERS, 0, FIRST, 0, id="a stored 0 is an offset too"),
        pytest.param(ORDERS, 17, AT_NOON, 17, id="a stored offset wins over a time"),
        pytest.param(ORDERS, None, LAST, 90, id="last begins at the end"),
        pytest.param(RETRY, None, LAST, 0, id="last skips no retries"),
        pytest.param(ORDERS, None, FIRST, 0, id="first begins at 0, which the first pull corrects"),
        pytest.param(RETRY, None, FIRST, 0, id="first skips no retries"),
        pytest.param(ORDERS, None, AT_NOON, 40, id="a time is looked up"),
        pytest.param(RETRY, None, AT_NOON, 90, id="with a time, retries begin at the end"),
    ],
)
async def test_a_queue_is_read_from(queue: MessageQueue, stored: int | None, rule: StartRule, offset: int) -> None:
    position = await start_position(queue, stored, rule, Answers())
    assert position.offset == offset
    assert position.reason.startswith(
        {17: "committed before", 0: "from the beginning", None: "nothing committed"}[stored]
    )


async def test_no_answer_is_no_offset() -> None:
    with pytest.raises(ClientError):
        await start_position(ORDERS, None, LAST, Silence())


def test_a_rule_is_a_word_or_a_datetime() -> None:
    assert start_rule("last") == LAST
    assert start_rule("first") == FIRST
    assert start_rule(datetime(1970, 1, 1, 12, tzinfo=UTC)) == AT_NOON


@pytest.mark.parametrize("word", ["LAST", "", "latest", datetime(2026, 1, 1)])
def test_a_rule_refuses_other_words_and_datetimes_without_a_zone(word: str | datetime) -> None:
    with pytest.raises(ValueError, match="consume_from"):
        start_rule(word)
