"""Brokers whose dead-letter queues can be pulled, over real sockets: for the index of dead letters."""

from __future__ import annotations

from dataclasses import dataclass, field

from remoting.connection import Connection
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.headers.pull import PullMessageHeader, PullMessageResponseHeader
from remoting.wire.headers.typed import read_header, write_header
from remoting.wire.properties import Property, encode_properties
from remoting.wire.stored_message import StoredMessage, encode_message
from tests.support.topic_brokers import TopicBroker


def dead_message(offset: int, *, topic: str = "%DLQ%billing", **fields: object) -> StoredMessage:
    """A message as a broker has it in a dead-letter queue; `properties` and further fields as given."""
    given = dict(fields)
    properties = {
        Property.RETRY_TOPIC: "orders",
        Property.UNIQ_KEY: f"UNIQ{offset}",
        Property.TAGS: "paid",
        Property.KEYS: f"order-{offset} k",
        **given.pop("properties", {}),  # type: ignore[dict-item]
    }
    values = {
        "queue_id": 0,
        "queue_offset": offset,
        "commit_log_offset": 1000 + offset,
        "born_timestamp_ms": 1_700_000_000_000,
        "born_host": ("10.0.0.7", 4),
        "store_timestamp_ms": 1_700_000_100_000 + offset,
        "store_host": ("10.0.0.1", 10911),
        "reconsume_times": 16,
        "body": b'{"id": %d}' % offset,
    }
    return StoredMessage(
        topic=topic,
        properties_text=encode_properties({name: value for name, value in properties.items() if value}),
        **(values | given),  # type: ignore[arg-type]
    )


@dataclass
class DeadLetterQueues:
    """What a broker has in its dead-letter queues, by topic; each queue is 0. `refusal`: no pull is allowed.

    `pulled`: (group, offset, sysFlag) of every pull.
    """

    broker: TopicBroker
    messages: dict[str, list[StoredMessage]] = field(default_factory=dict)
    min_offset: int = 0
    refusal: str = ""
    pulled: list[tuple[str, int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.broker.server.answers[RequestCode.PULL_MESSAGE] = self._pull

    def _pull(self, _: Connection, request: Command) -> Command:
        header = read_header(PullMessageHeader, request.ext_fields)
        self.pulled.append((header.consumer_group, header.queue_offset, header.sys_flag))
        if self.refusal:
            return response(request, ResponseCode.NO_PERMISSION, self.refusal)
        queue = self.messages.get(header.topic, [])
        end = queue[-1].queue_offset + 1 if queue else 0
        found = [one for one in queue if one.queue_offset >= max(header.queue_offset, self.min_offset)]
        found = found[: header.max_msg_nums]
        if header.queue_offset > end or header.queue_offset < self.min_offset:
            code, found = ResponseCode.PULL_OFFSET_MOVED, []
            next_offset = end if header.queue_offset > end else self.min_offset
        else:
            code = ResponseCode.SUCCESS if found else ResponseCode.PULL_NOT_FOUND
            next_offset = found[-1].queue_offset + 1 if found else header.queue_offset
        place = PullMessageResponseHeader(
            suggest_which_broker_id=0, next_begin_offset=next_offset, min_offset=self.min_offset, max_offset=end
        )
        body = b"".join(encode_message(one) for one in found)
        return response(request, code, ext_fields=write_header(place), body=body)
