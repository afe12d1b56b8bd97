"""Topics: who may make which, with how many queues, and that the file tells the truth."""

from __future__ import annotations

import pytest

from broker.engine.config import BrokerConfig
from broker.engine.topics.topic_configs import Topics
from remoting.complaints import ComplaintLog
from remoting.wire import names
from remoting.wire.bodies.topics import PERM_READ_WRITE, TopicConfig
from remoting.wire.errors import MessageError


class House:
    def __init__(self, folder, **config) -> None:
        self.folder = folder
        self.config = BrokerConfig(store=folder, **config)
        self.changed: list[str] = []
        self.topics = Topics(folder / "config", self.config, self.changed.append, ComplaintLog())
        self.topics.load()

    def put(self, topic: TopicConfig) -> None:
        """As a tool would, flushed at once."""
        refusals: list[Exception | None] = []
        self.topics.put([topic], refusals.append)
        self.topics.file.flush()
        assert refusals == [None]


@pytest.fixture
def house(tmp_path) -> House:
    return House(tmp_path)


@pytest.mark.parametrize(("asked", "made"), [(4, 4), (16, 8), (8, 8), (1, 1)])
def test_an_unknown_topic_takes_the_smaller_number_of_queues(house, asked, made) -> None:
    topic = house.topics.create_on_send("orders", names.AUTO_CREATE_TOPIC, asked)
    assert (topic.read_queue_nums, topic.write_queue_nums, topic.perm) == (made, made, PERM_READ_WRITE)
    assert house.changed == ["orders"]


async def test_a_topic_is_not_made_from_a_template_that_may_not_be_inherited(house) -> None:
    house.put(TopicConfig(topic_name="plain"))
    assert house.topics.create_on_send("orders", "plain", 4) is None
    assert house.topics.create_on_send("orders", "unknown", 4) is None


def test_a_topic_is_not_made_where_that_is_switched_off(tmp_path) -> None:
    house = House(tmp_path, creates_topics=False)
    assert house.topics.find(names.AUTO_CREATE_TOPIC) is None
    assert house.topics.create_on_send("orders", names.AUTO_CREATE_TOPIC, 4) is None


@pytest.mark.parametrize("name", ["", "a b", "a/b", "x" * 128, "täg"])
def test_an_illegal_name_is_refused(house, name) -> None:
    with pytest.raises(MessageError, match="topic name"):
        house.topics.create_on_send(name, names.AUTO_CREATE_TOPIC, 4)


def test_topics_are_there_after_a_restart(house) -> None:
    house.topics.create_on_send("orders", names.AUTO_CREATE_TOPIC, 4)
    house.topics.create_for_send_back(names.retry_topic("billing"), 1, PERM_READ_WRITE)
    again = House(house.folder).topics
    assert again.find("orders") == house.topics.find("orders")
    assert again.find("%RETRY%billing").read_queue_nums == 1
    assert again.table.data_version.counter == house.topics.table.data_version.counter


async def test_a_changed_topic_gets_a_new_version_and_an_unchanged_one_does_not(house) -> None:
    house.put(TopicConfig(topic_name="orders", read_queue_nums=4))
    counter = house.topics.table.data_version.counter
    house.put(TopicConfig(topic_name="orders", read_queue_nums=4))
    assert house.topics.table.data_version.counter == counter
    house.put(TopicConfig(topic_name="orders", read_queue_nums=5))
    assert house.topics.table.data_version.counter == counter + 1
    assert house.changed == ["orders", "orders"]


async def test_a_deleted_topic_is_gone_after_a_restart(house) -> None:
    house.put(TopicConfig(topic_name="orders"))
    assert house.topics.delete("orders") is True
    assert house.topics.delete("orders") is False
    assert House(house.folder).topics.find("orders") is None


def test_a_topic_that_cannot_be_written_down_is_not_known(house) -> None:
    version = house.topics.table.data_version
    blocked = house.folder / "config" / "topics.json.changes"
    blocked.mkdir()
    with pytest.raises(MessageError, match=r"topics\.json cannot be written: Is a directory"):
        house.topics.create_on_send("orders", names.AUTO_CREATE_TOPIC, 4)
    assert (house.topics.find("orders"), house.changed) == (None, [])
    assert house.topics.table.data_version == version
    blocked.rmdir()
    assert house.topics.create_on_send("orders", names.AUTO_CREATE_TOPIC, 4) == House(house.folder).topics.find(
        "orders"
    )


def test_the_broker_has_its_own_topics(house) -> None:
    own = set(house.topics.system_names())
    assert {"TBW102", "SCHEDULE_TOPIC_XXXX", "SELF_TEST_TOPIC", "local", "broker-a", "local_REPLY_TOPIC"} <= own
    assert house.topics.find("SCHEDULE_TOPIC_XXXX").write_queue_nums == 18
