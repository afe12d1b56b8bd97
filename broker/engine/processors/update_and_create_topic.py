"""UPDATE_AND_CREATE_TOPIC (17), UPDATE_AND_CREATE_TOPIC_LIST (18): a tool makes or changes topics (RocketMQ's
`AdminBrokerProcessor`).

Pulls that wait at a topic are evaluated anew at once; routes are made of the topics themselves.
"""

from __future__ import annotations

import msgspec

from broker.engine.serving.requests import Request, answer_when_saved
from broker.engine.topics.topic_attributes import alter_attributes
from broker.engine.topics.topic_configs import QUEUE_NUMS_MAX, Topics
from remoting.wire.bodies.document import read_body
from remoting.wire.bodies.topics import PERM_MAX, CreateTopicListBody, TopicConfig
from remoting.wire.codes import ResponseCode
from remoting.wire.errors import MessageError
from remoting.wire.headers.topics import CreateTopicHeader
from remoting.wire.headers.typed import read_header
from remoting.wire.names import check_topic

TOPIC_FILTER_TYPES = ("SINGLE_TAG", "MULTI_TAG")


class UpdateAndCreateTopic:
    """17. Fewer queues than before hide the last ones and keep what is in them; more show them again."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics

    def __call__(self, request: Request) -> None:
        """Answers once it is on the disk. Raises MessageError naming what cannot be; then nothing has changed."""
        header = read_header(CreateTopicHeader, request.command.ext_fields)
        wanted = TopicConfig(
            topic_name=header.topic,
            read_queue_nums=header.read_queue_nums,
            write_queue_nums=header.write_queue_nums,
            perm=header.perm,
            topic_filter_type=header.topic_filter_type,
            topic_sys_flag=header.topic_sys_flag,
            order=header.order,
        )
        checked = _checked(self._topics, wanted, header.attributes or "")
        self._topics.put([checked], answer_when_saved(request))


class UpdateAndCreateTopicList:
    """18. All or none; Apache's broker leaves the others out when one of them is as it was."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics

    def __call__(self, request: Request) -> None:
        """Raises BodyError, and as `UpdateAndCreateTopic`."""
        topics = read_body(CreateTopicListBody, request.command.body).topic_config_list
        checked = [_checked(self._topics, topic, _change(topic.attributes)) for topic in topics]
        self._topics.put(checked, answer_when_saved(request))


def _checked(topics: Topics, wanted: TopicConfig, change: str) -> TopicConfig:
    """Returns the topic as it will be; `change` is that of its attributes. Raises MessageError."""
    check_topic(wanted.topic_name)
    topics.check_not_own(wanted.topic_name)
    _check_settings(wanted)
    present = topics.find(wanted.topic_name)
    known = present.attributes if present is not None else {}
    return msgspec.structs.replace(wanted, attributes=alter_attributes(known, change, is_new=present is None))


def _change(attributes: dict[str, str]) -> str:
    """Returns a change of attributes as the header of 17 writes it."""
    return ",".join([name if name.startswith("-") else f"{name}={value}" for name, value in attributes.items()])


def _check_settings(topic: TopicConfig) -> None:
    """Raises MessageError for a number that cannot be.

    RocketMQ takes any; a topic with -1 queues would be of no use.
    """
    for kind, number in (("read", topic.read_queue_nums), ("write", topic.write_queue_nums)):
        if not 0 <= number <= QUEUE_NUMS_MAX:
            raise MessageError(
                f"{kind}QueueNums {number} is illegal: give a number from 0 to {QUEUE_NUMS_MAX}",
                ResponseCode.INVALID_PARAMETER,
            )
    if not 0 <= topic.perm <= PERM_MAX:
        raise MessageError(
            f"perm {topic.perm} is illegal: 4 reads, 2 writes, 1 is inherited by topics made from this one; add them",
            ResponseCode.INVALID_PARAMETER,
        )
    if topic.topic_filter_type not in TOPIC_FILTER_TYPES:
        raise MessageError(
            f"topicFilterType = [{topic.topic_filter_type}] value invalid, give one of {TOPIC_FILTER_TYPES}",
            ResponseCode.SYSTEM_ERROR,
        )
