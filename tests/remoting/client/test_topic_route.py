from __future__ import annotations

import pytest

from remoting.client.topic_route import QUEUES_PER_BROKER_MAX, in_order, template_route, topic_route
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.route import BrokerData, QueueData, TopicRouteData


def route(*queues: QueueData, order: str | None = None, slaves_only: tuple[str, ...] = ()) -> TopicRouteData:
    names = dict.fromkeys(queue.broker_name for queue in queues)
    return TopicRouteData(
        broker_datas=[
            BrokerData(broker_addrs={"1" if name in slaves_only else "0": f"{name}:1"}, broker_name=name)
            for name in names
        ],
        queue_datas=list(queues),
        order_topic_conf=order,
    )


def queues(broker: str, perm: int = 6, read: int = 2, write: int = 2) -> QueueData:
    return QueueData(broker_name=broker, perm=perm, read_queue_nums=read, write_queue_nums=write)


def shown(found: tuple[MessageQueue, ...]) -> list[str]:
    return [f"{queue.broker_name}{queue.queue_id}" for queue in found]


def test_producers_use_the_write_queues_and_consumers_the_read_queues() -> None:
    found = topic_route("T", route(queues("a", read=3, write=1)))
    assert shown(found.publish_queues) == ["a0"]
    assert shown(found.subscribe_queues) == ["a0", "a1", "a2"]
    assert found.publish_queues[0].topic == "T"


@pytest.mark.parametrize(("perm", "publish", "subscribe"), [(6, 2, 2), (4, 0, 2), (2, 2, 0), (0, 0, 0), (7, 2, 2)])
def test_permissions_decide(perm: int, publish: int, subscribe: int) -> None:
    found = topic_route("T", route(queues("a", perm)))
    assert (len(found.publish_queues), len(found.subscribe_queues)) == (publish, subscribe)


def test_a_broker_without_a_master_can_be_read_but_not_written() -> None:
    found = topic_route("T", route(queues("a"), queues("b"), slaves_only=("b",)))
    assert shown(found.publish_queues) == ["a0", "a1"]
    assert shown(found.subscribe_queues) == ["a0", "a1", "b0", "b1"]


def test_brokers_come_in_the_order_of_their_names_whatever_the_name_server_says() -> None:
    one = topic_route("T", route(queues("b"), queues("a")))
    other = topic_route("T", route(queues("a"), queues("b")))
    assert shown(one.publish_queues) == ["a0", "a1", "b0", "b1"]
    assert one == other


def test_an_ordered_topic_is_written_only_as_its_configuration_says(caplog: pytest.LogCaptureFixture) -> None:
    found = topic_route("T", route(queues("a"), queues("b"), order="b:1;a:3;nonsense;"))
    assert shown(found.publish_queues) == ["b0", "a0", "a1", "a2"]
    assert "nonsense" in caplog.text


def test_a_topic_made_by_its_first_send_gets_four_queues_at_most() -> None:
    found = template_route("new", route(queues("a", 7, read=8, write=8), queues("b", 7, read=2, write=8)))
    assert found.is_template
    assert shown(found.publish_queues) == ["a0", "a1", "a2", "a3", "b0", "b1"]
    assert {queue.topic for queue in found.publish_queues} == {"new"}
    assert found.subscribe_queues == ()


def test_the_template_itself_is_left_as_it_was() -> None:
    template = route(queues("a", read=8, write=8))
    template_route("new", template)
    assert template.queue_datas[0].write_queue_nums == 8


def test_a_name_server_that_claims_endless_queues_is_not_believed() -> None:
    found = topic_route("T", route(queues("a", write=2**31 - 1, read=1)))
    assert len(found.publish_queues) == QUEUES_PER_BROKER_MAX


def test_an_empty_order_configuration_is_none() -> None:
    assert in_order(route(queues("a"), order="")).order_topic_conf is None
