"""Topics: their settings, how they come to be, `config/topics.json` (RocketMQ's `TopicConfigManager`).

A topic is on disk before any answer or route names it. Rules of creation:

- on a send to an unknown topic, from the template topic that the client names (TBW102), if that one has the INHERIT
  bit: min(client's number, template's number) of queues, the template's permission without INHERIT;
- on a heartbeat or a send-back: the group's retry topic and dead-letter topic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from broker.engine.config import BrokerConfig
from broker.engine.config_table import ConfigTable, Saved
from remoting.complaints import ComplaintLog
from remoting.wire import names
from remoting.wire.bodies.groups import SubscriptionGroupConfig
from remoting.wire.bodies.topics import PERM_INHERIT, PERM_READ_WRITE, TopicConfig, TopicTable
from remoting.wire.codes import ResponseCode
from remoting.wire.errors import MessageError

FILE_NAME = "topics.json"
# RocketMQ's own numbers of queues of its system topics.
_SYSTEM_QUEUE_NUMS = {
    names.SELF_TEST_TOPIC: 1,
    names.BENCHMARK_TOPIC: 1024,
    names.OFFSET_MOVED_TOPIC: 1,
    names.SCHEDULE_TOPIC: 18,
    names.TIMER_TOPIC: 1,
    names.HALF_TOPIC: 1,
    names.OP_HALF_TOPIC: 1,
}
CLUSTER_TOPIC_QUEUE_NUMS = 16
# What a tool may give a topic. Each queue stands in every answer that lists the topic's queues, and has files
# of its own; RocketMQ's largest topic has 1024.
QUEUE_NUMS_MAX = 10_000


class Topics:
    """`on_changed(topic)` is called for each topic that was created, changed or deleted; `file` keeps them."""

    def __init__(
        self, folder: Path, config: BrokerConfig, on_changed: Callable[[str], None], complaints: ComplaintLog
    ) -> None:
        self._config = config
        self.file = ConfigTable(
            folder / FILE_NAME,
            TopicTable(),
            "topic_config_table",
            TopicConfig,
            on_changed=on_changed,
            fold_interval_s=config.offsets_save_interval_s,
            complaints=complaints,
        )

    def load(self) -> None:
        """Reads the file and adds RocketMQ's system topics. Raises ConfigFileUnreadable, ConfigFileUnwritable."""
        unwanted = () if self._config.creates_topics else (names.AUTO_CREATE_TOPIC,)
        self.file.load({topic.topic_name: topic for topic in self._system_topics()}, unwanted)

    def _system_topics(self) -> list[TopicConfig]:
        inherit = PERM_READ_WRITE | PERM_INHERIT
        queue_nums = self._config.default_queue_nums
        topics = [_topic(name, number) for name, number in _SYSTEM_QUEUE_NUMS.items()]
        if self._config.creates_topics:
            topics.append(_topic(names.AUTO_CREATE_TOPIC, queue_nums, inherit))
        topics.append(_topic(self._config.cluster, CLUSTER_TOPIC_QUEUE_NUMS, inherit))
        topics.append(_topic(self._config.name, 1, inherit))
        topics.append(_topic(f"{self._config.cluster}{names.REPLY_TOPIC_SUFFIX}", 1))
        return topics

    def system_names(self) -> list[str]:
        """Returns the names of the topics that are the broker's own."""
        own = {topic.topic_name for topic in self._system_topics()}
        return [name for name in self.file.entries if name in own or names.is_system_topic(name)]

    def check_not_own(self, name: str) -> None:
        """Raises MessageError for a topic that the broker made for itself: tools may not change it."""
        if names.is_system_topic(name) or any(topic.topic_name == name for topic in self._system_topics()):
            raise MessageError(f"The topic[{name}] is conflict with system topic.", ResponseCode.INVALID_PARAMETER)

    @property
    def table(self) -> TopicTable:
        return self.file.table

    def find(self, name: str) -> TopicConfig | None:
        return self.file.entries.get(name)

    def create_on_send(self, name: str, template_name: str, queue_nums: int) -> TopicConfig | None:
        """Returns the topic, created like its template; None where that doesn't exist or doesn't allow it.

        Raises MessageError for an illegal name, ConfigFileUnwritable.
        """
        existing = self.find(name)
        template = self.find(template_name)
        if template_name == names.AUTO_CREATE_TOPIC and not self._config.creates_topics:
            template = None
        if existing is not None or template is None or not template.perm & PERM_INHERIT:
            return existing
        names.check_topic(name)
        number = max(0, min(queue_nums, template.write_queue_nums))
        return self._add(_topic(name, number, template.perm & ~PERM_INHERIT))

    def create_for_send_back(self, name: str, queue_nums: int, perm: int) -> TopicConfig:
        """Returns a group's retry or dead-letter topic, created where it is missing. Raises MessageError."""
        existing = self.find(name)
        if existing is not None:
            return existing
        names.check_topic(name)
        return self._add(_topic(name, queue_nums, perm))

    def create_retry_topics(self, groups: Iterable[SubscriptionGroupConfig]) -> None:
        """Creates the retry topics that the groups lack, with one write for all. Raises MessageError."""
        missing = {
            name: _topic(name, group.retry_queue_nums)
            for group in groups
            if group.retry_queue_nums > 0 and self.find(name := names.retry_topic(group.group_name)) is None
        }
        for name in missing:
            names.check_topic(name)
        if missing:
            self.file.save(missing)

    def put(self, topics: Iterable[TopicConfig], saved: Saved) -> None:
        """Creates or changes all of them or none, as an administrator says; calls `saved` when they are on the disk.

        Raises MessageError.
        """
        changed = {topic.topic_name: topic for topic in topics if self.find(topic.topic_name) != topic}
        for name in changed:
            names.check_topic(name)
        if changed:
            self.file.submit(changed, (), saved)
        else:
            saved(None)

    def grow(self, name: str, queue_nums: int) -> None:
        """Gives a topic that exists at least so many queues. Raises ConfigFileUnwritable."""
        topic = self.find(name)
        if topic is not None and min(topic.read_queue_nums, topic.write_queue_nums) < queue_nums:
            wider = {
                "read_queue_nums": max(topic.read_queue_nums, queue_nums),
                "write_queue_nums": max(topic.write_queue_nums, queue_nums),
            }
            self._add(msgspec.structs.replace(topic, **wider))

    def delete(self, name: str) -> bool:
        """Returns False when there was none. Raises ConfigFileUnwritable."""
        if self.find(name) is None:
            return False
        self.file.save({}, [name])
        return True

    def _add(self, topic: TopicConfig) -> TopicConfig:
        self.file.save({topic.topic_name: topic})
        return topic


def _topic(name: str, queue_nums: int, perm: int = PERM_READ_WRITE) -> TopicConfig:
    return TopicConfig(topic_name=name, read_queue_nums=queue_nums, write_queue_nums=queue_nums, perm=perm)
