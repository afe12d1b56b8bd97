"""What is sent where when a message must be consumed later."""

from __future__ import annotations

from typing import Any, cast

import pytest

from consumer.engine.brokers import Brokers
from consumer.engine.process_queue import CachedMessage, ProcessQueue
from consumer.engine.send_back import SendBack
from remoting.client.errors import NotConnected
from remoting.client.producer import Producer
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.failures import FailureReason
from remoting.wire.headers.groups import SendMessageBackHeader
from remoting.wire.properties import encode_properties
from remoting.wire.stored_message import StoredMessage
from tests.support.failure_reasons import read_reason

REASON = FailureReason("ValueError", "no sku", "shop.bill", "host@1#a", 3)


class Away:
    """Stands for a master that is away, or takes messages back."""

    def __init__(self, *, is_away: bool) -> None:
        self.headers: list[SendMessageBackHeader] = []
        self._is_away = is_away

    async def send_back(self, broker_name: str, header: SendMessageBackHeader) -> None:
        if self._is_away:
            raise NotConnected(broker_name, "it is away")
        self.headers.append(header)


class Copies:
    """Stands for the producer of copies."""

    def __init__(self) -> None:
        self.topics: list[str] = []
        self.properties: list[dict[str, str]] = []
        self.fields: list[dict[str, Any]] = []

    async def forward(self, topic: str, body: bytes, properties: dict[str, str], **fields: Any) -> None:
        self.topics.append(topic)
        self.properties.append(properties)
        self.fields.append(fields)


def cached() -> CachedMessage:
    properties = {"UNIQ_KEY": "U1", "TRAN_MSG": "true", "__FAILURE_CLASS": "Old", "__FAILURE_TEXT": "old"}
    stored = StoredMessage(
        topic="orders",
        queue_id=0,
        body=b"x",
        commit_log_offset=77,
        reconsume_times=2,
        properties_text=encode_properties(properties),
    )
    return ProcessQueue(MessageQueue("orders", "broker-a", 0), 0).put([stored], 1)[0]


async def test_a_send_back_carries_the_level_and_the_reason() -> None:
    brokers, copies = Away(is_away=False), Copies()
    send_back = SendBack(cast(Brokers, brokers), cast(Producer, copies), "billing", 16)
    assert await send_back.send(cached(), 5, REASON)
    [header] = brokers.headers
    assert (header.offset, header.group, header.delay_level, header.max_reconsume_times) == (77, "billing", 5, 16)
    assert (header.origin_topic, header.origin_msg_id, header.bname) == ("orders", "U1", "broker-a")
    assert (header.failure_class, header.failure_text, header.failure_attempt) == ("ValueError", "no sku", 3)
    assert copies.topics == []


@pytest.mark.parametrize(
    ("level", "delay", "max_reconsume_times"),
    [
        pytest.param(0, "5", 16, id="the broker would have decided: level 3 and one for each retry"),
        pytest.param(1, "1", 16, id="a level of the listener's"),
        pytest.param(-1, "5", 0, id="a dead letter: more retries than are allowed"),
    ],
)
async def test_a_copy_keeps_what_the_listener_said(level: int, delay: str, max_reconsume_times: int) -> None:
    copies = Copies()
    send_back = SendBack(cast(Brokers, Away(is_away=True)), cast(Producer, copies), "billing", 16)
    assert await send_back.send(cached(), level, REASON)
    [properties], [fields] = copies.properties, copies.fields
    assert copies.topics == ["%RETRY%billing"]
    assert (properties["DELAY"], properties["RETRY_TOPIC"], "TRAN_MSG" in properties) == (delay, "orders", False)
    assert (fields["reconsume_times"], fields["max_reconsume_times"]) == (3, max_reconsume_times)
    assert read_reason(properties) == REASON


async def test_a_copy_without_a_reason_does_not_carry_that_of_an_earlier_attempt() -> None:
    copies = Copies()
    send_back = SendBack(cast(Brokers, Away(is_away=True)), cast(Producer, copies), "billing", 16)
    assert await send_back.send(cached())
    assert read_reason(copies.properties[0]) is None
