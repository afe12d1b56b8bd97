"""Topics as brokers know them: 17, 21, 202, 351, and config/topics.json."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from remoting.wire.bodies.document import Document, convert, read_object
from remoting.wire.bodies.message_queue import MessageQueue, read_queue_map, write_queue_map
from remoting.wire.command import Body

PERM_INHERIT = 1
PERM_WRITE = 2
PERM_READ = 4
PERM_READ_WRITE = PERM_READ | PERM_WRITE
PERM_MAX = PERM_READ_WRITE | PERM_INHERIT


class DataVersion(Document, kw_only=True):
    """The version of a table that a broker holds; `timestamp` in ms."""

    counter: int = 0
    state_version: int = 0
    timestamp: int = 0


class TopicConfig(Document, kw_only=True):
    """A topic's settings; defaults are RocketMQ's. `perm` is a sum of the PERM_ bits."""

    attributes: dict[str, str] = {}  # noqa: RUF012 - msgspec copies a default per instance
    order: bool = False
    perm: int = PERM_READ_WRITE
    read_queue_nums: int = 8
    topic_filter_type: str = "SINGLE_TAG"
    topic_name: str
    topic_sys_flag: int = 0
    write_queue_nums: int = 8

    @property
    def is_readable(self) -> bool:
        return bool(self.perm & PERM_READ)

    @property
    def is_writable(self) -> bool:
        return bool(self.perm & PERM_WRITE)


class TopicTable(Document, kw_only=True):
    """21 GET_ALL_TOPIC_CONFIG, and config/topics.json."""

    data_version: DataVersion = msgspec.field(default_factory=DataVersion)
    topic_config_table: dict[str, TopicConfig] = {}  # noqa: RUF012


class CreateTopicListBody(Document, kw_only=True):
    """`CreateTopicListRequestBody` (18). Attributes are changes here: `+key` to a value, `-key` removes one."""

    topic_config_list: list[TopicConfig]


class TopicOffset(Document, kw_only=True):
    """One queue of 202; `last_update_timestamp` ms, 0 when the queue is empty."""

    last_update_timestamp: int = 0
    max_offset: int = 0
    min_offset: int = 0


def write_topic_stats(offsets: Mapping[MessageQueue, TopicOffset], put_tps: float = 0.0) -> bytes:
    """Encodes the response to GET_TOPIC_STATS_INFO (202)."""
    return msgspec.json.encode({"offsetTable": write_queue_map(offsets.items()), "topicPutTps": put_tps})


def read_topic_stats(body: Body) -> dict[MessageQueue, TopicOffset]:
    """Reads the response to GET_TOPIC_STATS_INFO (202). Raises BodyError."""
    table = read_queue_map(read_object("TopicStatsTable", body).get("offsetTable"))
    return {queue: convert(TopicOffset, value) for queue, value in table.items()}
