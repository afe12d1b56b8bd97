"""Topics made, changed and deleted by tools."""

from __future__ import annotations

import pytest

from broker.engine.processors.delete_topic_in_broker import DeleteTopicInBroker
from broker.engine.processors.get_topic_config import GetTopicConfig
from broker.engine.processors.update_and_create_topic import UpdateAndCreateTopic, UpdateAndCreateTopicList
from broker.engine.topics.topic_configs import QUEUE_NUMS_MAX
from remoting.wire.bodies.document import read_body, write_body
from remoting.wire.bodies.topics import CreateTopicListBody, TopicConfig
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from tests.support.broker_parts import BrokerParts
from tests.support.stores import draft


@pytest.fixture
async def parts(tmp_path):
    parts = BrokerParts(tmp_path / "store")
    yield parts
    parts.close()


def put(parts: BrokerParts, topic: str = "orders", **fields: str) -> Command:
    values = {
        "topic": topic,
        "defaultTopic": "TBW102",
        "readQueueNums": "4",
        "writeQueueNums": "4",
        "perm": "6",
        "topicFilterType": "SINGLE_TAG",
        "order": "false",
    }
    command = Command(code=RequestCode.UPDATE_AND_CREATE_TOPIC, ext_fields=values | fields)
    return parts.ask(UpdateAndCreateTopic(parts.topics), command)


def delete(parts: BrokerParts, topic: str) -> Command:
    processor = DeleteTopicInBroker(parts.topics, parts.offsets, parts.watch.assignments, parts.store)
    return parts.ask(processor, Command(code=RequestCode.DELETE_TOPIC_IN_BROKER, ext_fields={"topic": topic}))


def told(parts: BrokerParts, topic: str) -> TopicConfig | int:
    command = Command(code=RequestCode.GET_TOPIC_CONFIG, ext_fields={"topic": topic})
    answer = parts.ask(GetTopicConfig(parts.topics), command)
    return read_body(TopicConfig, answer.body) if answer.code == ResponseCode.SUCCESS else answer.code


async def test_a_topic_is_what_the_tool_said(parts) -> None:
    assert put(parts, order="true", attributes="+message.type=FIFO", topicFilterType="MULTI_TAG").code == 0
    expected = TopicConfig(
        topic_name="orders",
        read_queue_nums=4,
        write_queue_nums=4,
        order=True,
        topic_filter_type="MULTI_TAG",
        attributes={"message.type": "FIFO"},
    )
    assert told(parts, "orders") == expected
    assert put(parts, readQueueNums="8", writeQueueNums="2", perm="4", topicSysFlag="1").code == 0
    changed = told(parts, "orders")
    assert (changed.read_queue_nums, changed.write_queue_nums, changed.perm, changed.topic_sys_flag) == (8, 2, 4, 1)
    assert changed.attributes == {"message.type": "FIFO"}, "attributes that the change does not name stay"


async def test_a_change_is_told_to_who_watches_and_the_same_again_is_not(parts) -> None:
    before = parts.watch.revision
    put(parts)
    put(parts)
    assert parts.watch.revision == before + 1


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"topic": ""}, ResponseCode.INVALID_PARAMETER),
        ({"topic": "not a name"}, ResponseCode.INVALID_PARAMETER),
        ({"topic": "x" * 128}, ResponseCode.INVALID_PARAMETER),
        ({"topic": "TBW102"}, ResponseCode.INVALID_PARAMETER),
        ({"topic": "local"}, ResponseCode.INVALID_PARAMETER),
        ({"topic": "rmq_sys_mine"}, ResponseCode.INVALID_PARAMETER),
        ({"readQueueNums": "-1"}, ResponseCode.INVALID_PARAMETER),
        ({"writeQueueNums": str(QUEUE_NUMS_MAX + 1)}, ResponseCode.INVALID_PARAMETER),
        ({"writeQueueNums": "many"}, ResponseCode.SYSTEM_ERROR),
        ({"perm": "8"}, ResponseCode.INVALID_PARAMETER),
        ({"perm": "-1"}, ResponseCode.INVALID_PARAMETER),
        ({"topicFilterType": "NO_TAG"}, ResponseCode.SYSTEM_ERROR),
        ({"attributes": "+colour=red"}, ResponseCode.SYSTEM_ERROR),
    ],
)
async def test_a_topic_that_cannot_be_is_refused_and_nothing_is_changed(parts, fields, code) -> None:
    version = parts.topics.table.data_version
    answer = put(parts, **fields)
    assert (answer.code, bool(answer.remark)) == (code, True)
    assert parts.topics.table.data_version == version


def put_several(parts: BrokerParts, *topics: TopicConfig) -> Command:
    body = write_body(CreateTopicListBody(topic_config_list=list(topics)))
    return parts.ask(
        UpdateAndCreateTopicList(parts.topics), Command(code=RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, body=body)
    )


async def test_several_topics_come_with_one_write(parts) -> None:
    put(parts)
    version = parts.topics.table.data_version.counter
    typed = TopicConfig(topic_name="refunds", attributes={"+message.type": "FIFO"})
    assert put_several(parts, TopicConfig(topic_name="orders", perm=4), typed).code == ResponseCode.SUCCESS
    assert parts.topics.table.data_version.counter == version + 1
    assert (told(parts, "orders").perm, told(parts, "refunds").attributes) == (4, {"message.type": "FIFO"})
    again = TopicConfig(topic_name="refunds", attributes={"-message.type": ""})
    assert put_several(parts, again, told(parts, "orders")).code == ResponseCode.SUCCESS
    assert told(parts, "refunds").attributes == {}


async def test_of_several_topics_none_comes_where_one_cannot_be(parts) -> None:
    answer = put_several(parts, TopicConfig(topic_name="orders"), TopicConfig(topic_name="TBW102"))
    assert answer.code == ResponseCode.INVALID_PARAMETER
    assert told(parts, "orders") == ResponseCode.TOPIC_NOT_EXIST


async def test_a_deleted_topic_takes_its_messages_and_every_groups_progress_along(parts) -> None:
    put(parts)
    parts.store.append(draft())
    parts.offsets.reset("billing", "orders", 0, 1)
    parts.offsets.pulled("billing", "orders", 0, 1)
    parts.offsets.commit("billing", "others", 0, 1)
    parts.watch.pulled("billing", "orders", 0, "me@1")
    parts.watch.pulled("billing", "others", 0, "me@1")
    assert delete(parts, "orders").code == ResponseCode.SUCCESS
    assert told(parts, "orders") == ResponseCode.TOPIC_NOT_EXIST
    assert (parts.store.queues("orders"), parts.store.max_offset("orders", 0)) == ([], 0)
    assert list(parts.offsets.items()) == [("billing", "others", 0, 1)]
    assert not parts.offsets.has_reset("billing", "orders", 0)
    assert parts.offsets.pulled_offset("billing", "orders", 0) is None
    assert [topic for topic, *_ in parts.watch.assignments.of_group("billing")] == ["others"]
    put(parts)
    assert parts.store.append(draft()).queue_offset == 0


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        ("nowhere", ResponseCode.SUCCESS),
        (" ", ResponseCode.INVALID_PARAMETER),
        ("SCHEDULE_TOPIC_XXXX", ResponseCode.INVALID_PARAMETER),
        ("broker-a", ResponseCode.INVALID_PARAMETER),
    ],
)
async def test_deleting_what_is_not_there_succeeds_and_what_is_the_brokers_own_does_not(parts, topic, code) -> None:
    assert delete(parts, topic).code == code
    assert parts.topics.find("SCHEDULE_TOPIC_XXXX")
    assert parts.topics.find("broker-a")


@pytest.mark.parametrize("name", ["..", ".", "../config", "orders/0", "{folder}"])
async def test_deleting_what_is_no_topics_name_touches_no_folder(parts, tmp_path, name) -> None:
    put(parts)
    parts.store.append(draft())
    kept = tmp_path / "kept"
    kept.mkdir()
    before = sorted(path for path in tmp_path.rglob("*"))
    assert delete(parts, name.format(folder=kept)).code == ResponseCode.INVALID_PARAMETER
    assert sorted(path for path in tmp_path.rglob("*")) == before


async def test_deleting_topics_that_never_were_leaves_nothing_to_remember(parts, tmp_path) -> None:
    parts.store.append(draft())
    before = sorted(path for path in tmp_path.rglob("*"))
    for number in range(10):
        delete(parts, f"never-{number}")
    assert sorted(path for path in tmp_path.rglob("*")) == before
