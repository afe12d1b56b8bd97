"""The topics of one broker: their settings, their queues' ends, who reads them."""

from __future__ import annotations

from functools import partial

from remoting.client.admin.requests import Requests, read_aside
from remoting.client.admin.table_pages import TOPIC_PAGES
from remoting.client.errors import BrokerRefused, NotSupported
from remoting.wire.bodies.document import read_body
from remoting.wire.bodies.groups import GroupList
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.topics import TopicConfig, TopicOffset, TopicTable, read_topic_stats
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.headers.routes import TopicHeader
from remoting.wire.headers.topics import CreateTopicHeader


class Topics:
    """Every broker has its own settings of a topic."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    async def table(self, address: str) -> TopicTable:
        """Returns all topics of a broker (21)."""
        table = TopicTable()
        async for page in self._requests.pages(address, RequestCode.GET_ALL_TOPIC_CONFIG, TOPIC_PAGES):
            part = await read_aside(partial(read_body, TopicTable), page)
            table.data_version = part.data_version
            table.topic_config_table.update(part.topic_config_table)
        return table

    async def config(self, address: str, topic: str) -> TopicConfig | None:
        """Returns the topic's settings on a broker (351); None where the broker doesn't have it."""
        code = RequestCode.GET_TOPIC_CONFIG
        try:
            answer = await self._requests.ask(address, code, TopicHeader(topic=topic), about=f"topic {topic!r}")
        except NotSupported:
            # Apache's brokers of the 4 line know the whole table alone.
            return (await self.table(address)).topic_config_table.get(topic)
        except BrokerRefused as error:
            if error.code == ResponseCode.TOPIC_NOT_EXIST:
                return None
            raise
        return read_body(TopicConfig, answer.body)

    async def create(self, address: str, config: TopicConfig) -> None:
        """Creates the topic, or changes it to `config` (17). `attributes` as the wire has them: "+key" → value."""
        header = CreateTopicHeader(
            topic=config.topic_name,
            read_queue_nums=config.read_queue_nums,
            write_queue_nums=config.write_queue_nums,
            perm=config.perm,
            topic_filter_type=config.topic_filter_type,
            topic_sys_flag=config.topic_sys_flag,
            order=config.order,
            attributes=",".join(_attribute(*item) for item in config.attributes.items()) or None,
        )
        code = RequestCode.UPDATE_AND_CREATE_TOPIC
        await self._requests.ask(address, code, header, about=f"topic {config.topic_name!r}")

    async def delete(self, address: str, topic: str) -> None:
        """Deletes the topic on a broker (215): its settings, every group's progress on it, and its messages."""
        code = RequestCode.DELETE_TOPIC_IN_BROKER
        await self._requests.ask(address, code, TopicHeader(topic=topic), about=f"topic {topic!r}")

    async def stats(self, address: str, topic: str) -> dict[MessageQueue, TopicOffset]:
        """Returns min and max offset of the topic's queues on a broker (202)."""
        code = RequestCode.GET_TOPIC_STATS_INFO
        answer = await self._requests.ask(address, code, TopicHeader(topic=topic), about=f"topic {topic!r}")
        return await read_aside(read_topic_stats, answer.body)

    async def groups(self, address: str, topic: str) -> list[str]:
        """Returns the groups that subscribe to the topic now, and those that committed an offset on it once (300)."""
        code = RequestCode.QUERY_TOPIC_CONSUME_BY_WHO
        answer = await self._requests.ask(address, code, TopicHeader(topic=topic), about=f"topic {topic!r}")
        return read_body(GroupList, answer.body).group_list


def _attribute(key: str, value: str) -> str:
    """Returns one attribute as the wire has it: `+key=value`, or `-key` for one to be removed."""
    return key if key.startswith("-") else f"{key}={value}"
