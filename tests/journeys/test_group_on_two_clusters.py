"""The same group on two brokers of ours, and a deploy that changes its subscription: on the page and over REST."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from consumer.engine.config import ConsumerConfig
from consumer.engine.listening import Listener
from consumer.engine.message import Message
from consumer.engine.push_consumer import PushConsumer
from mqadmin.clusters.models import Cluster
from tests.support.broker_in_thread import BrokerInThread
from tests.support.follower import follower_thread
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.django_db(transaction=True)]

TOPIC, GROUP = "orders", "billing"


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[dict[str, BrokerInThread]]:
    with BrokerInThread(tmp_path / "east") as east, BrokerInThread(tmp_path / "west") as west:
        found = {"east": east, "west": west}
        for name, broker in found.items():
            Cluster.objects.create(name=name, namesrv=broker.namesrv)
        with follower_thread(stopped_within_s=120):
            yield found


async def _listen(message: Message) -> None:
    """Takes whatever comes."""


Join = Callable[[str, str], PushConsumer]


@pytest.fixture
def join(brokers: dict[str, BrokerInThread]) -> Iterator[Join]:
    """Starts members by their cluster and tag; those that a test does not stop leave at its end."""
    members: list[tuple[BrokerInThread, PushConsumer]] = []

    def start(cluster: str, tag: str) -> PushConsumer:
        broker = brokers[cluster]
        config = ConsumerConfig(broker.namesrv, GROUP)
        member = PushConsumer(config, {TOPIC: Listener(TOPIC, _listen, tag, is_async=True)})
        members.append((broker, member))
        broker.run(member.start())
        return member

    yield start
    for broker, member in members:
        broker.run(member.stop())


@pytest.fixture
def comparison(admin_client: Client) -> Callable[[str], dict[str, Any]]:
    def ask(cluster: str) -> dict[str, Any]:
        answer = admin_client.get(f"/api/v1/clusters/{cluster}/groups/{GROUP}/subscriptions/comparison")
        return dict(answer.json()) if answer.status_code == 200 else {}

    return ask


def told(found: dict[str, Any], client_id: str) -> list[tuple[str, bool]]:
    """Returns what the history says of a member's subscription to the topic, the oldest first."""
    of_member = [one for one in found["history"] if one["client_id"] == client_id and one["topic"] == TOPIC]
    return [(one["expression"], one["is_end"]) for one in reversed(of_member)]


def test_a_group_that_subscribes_otherwise_on_another_cluster_is_named_until_both_are_alike(
    brokers: dict[str, BrokerInThread],
    join: Join,
    comparison: Callable[[str], dict[str, Any]],
    admin_client: Client,
) -> None:
    join("east", "A")
    west = join("west", "B")

    def elsewhere(cluster: str) -> Any:
        return comparison(cluster).get("elsewhere")

    other = {"member_count": 1, "is_different": True}
    wait_until(lambda: elsewhere("east") == [{"cluster": "west", **other}], what="west, which differs")
    wait_until(lambda: elsewhere("west") == [{"cluster": "east", **other}], what="east, which differs")
    page = admin_client.get(f"/clusters/east/groups/{GROUP}/subscriptions/").content.decode()
    section = page[page.index('id="elsewhere-head"') :]
    assert f'href="/clusters/west/groups/{GROUP}/subscriptions/"' in section
    assert "It subscribes to something else there." in section

    brokers["west"].run(west.stop())
    successor = join("west", "A")
    alike = [{"cluster": "west", "member_count": 1, "is_different": False}]
    wait_until(lambda: elsewhere("east") == alike, what="west, which does not differ any more")
    wait_until(lambda: told(comparison("west"), successor.client_id) == [("A", False)], what="its own subscription")
    found = comparison("west")
    assert told(found, west.client_id) == [("B", False), ("B", True)]
    assert told(found, "")[-1] == ("A", False), "the broker's own table"
    assert found["findings"] == []
    page = admin_client.get(f"/clusters/west/groups/{GROUP}/subscriptions/").content.decode()
    history = page[page.index('id="subscription-history"') :]
    # That the one before is gone may be seen after its successor is there; that it began was seen first of all.
    assert history.index(successor.client_id) < history.rindex(west.client_id), "the latest first"
    assert "ended:" in history
