"""Members of our consumer on our broker that want different tags: seen from the first heartbeat of the second one.

The broker takes one heartbeat of each member and no more: further ones are answered, and nothing is learned from them.
So what the console sees it has seen within one heartbeat, on a machine as busy as it may be.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from django.test import Client

from broker.engine.processors.heart_beat import HeartBeat
from broker.engine.serving.requests import Request
from consumer.engine.config import ConsumerConfig
from consumer.engine.listening import Listener
from consumer.engine.message import Message
from consumer.engine.push_consumer import PushConsumer
from mqadmin.clusters.models import Cluster, Member
from mqadmin.events.kinds import EventKind
from mqadmin.events.models import Event
from mqadmin.rebalances.models import RebalanceEvent, RebalanceKind
from remoting.wire.bodies.heartbeat import read_heartbeat
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response
from tests.support.broker_in_thread import BrokerInThread
from tests.support.follower import follower_thread
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.django_db(transaction=True)]

TOPIC, GROUP = "orders", "billing"
# Nobody expires for want of the heartbeats that are not taken.
EXPIRY_S = 3600


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many heartbeats with a consumer were taken, by client id: one of each."""
    found: Counter[str] = Counter()
    lock = threading.Lock()
    take: Callable[[HeartBeat, Request], Command] = HeartBeat.__call__

    def take_the_first(self: HeartBeat, request: Request) -> Command:
        data = read_heartbeat(request.command.body)
        with lock:
            if data.consumer_data_set and found[data.client_id]:
                return response(request.command, ResponseCode.SUCCESS)
            found[data.client_id] += bool(data.consumer_data_set)
        return take(self, request)

    monkeypatch.setattr(HeartBeat, "__call__", take_the_first)
    return found


@pytest.fixture
def broker(tmp_path: Path, taken: Counter[str]) -> Iterator[BrokerInThread]:
    with BrokerInThread(tmp_path / "store", member_expiry_s=EXPIRY_S) as broker:
        Cluster.objects.create(name="local", namesrv=broker.namesrv)
        with follower_thread(stopped_within_s=120):
            yield broker


async def _listen(message: Message) -> None:
    """Takes whatever comes."""


@pytest.fixture
def join(broker: BrokerInThread) -> Iterator[Callable[[str], PushConsumer]]:
    """Starts members by their tag; those that a test does not stop leave at its end."""
    members: list[PushConsumer] = []

    async def start(tag: str) -> PushConsumer:
        listener = Listener(TOPIC, _listen, tag, is_async=True)
        member = PushConsumer(ConsumerConfig(broker.namesrv, GROUP), {TOPIC: listener})
        await member.start()
        members.append(member)
        return member

    yield lambda tag: cast("PushConsumer", broker.run(start(tag)))
    for member in members:
        broker.run(member.stop())


def conflicts() -> list[dict[str, Any]]:
    """Returns what scripts were told of conflicts in the group, oldest first."""
    rows = Event.objects.filter(kind=EventKind.CONFLICT, group_name=GROUP).order_by("pk")
    return list(rows.values_list("data", flat=True))


def test_a_second_member_with_another_tag_is_in_conflict_by_its_first_heartbeat(
    broker: BrokerInThread, join: Callable[[str], PushConsumer], taken: Counter[str], admin_client: Client
) -> None:
    first = join("A")
    wait_until(lambda: Member.objects.filter(client_id=first.client_id, left_at=None).exists(), what="the first member")
    assert conflicts() == []

    second = join("B")
    (told,) = wait_until(conflicts, what="the conflict")
    assert (told["is_in_conflict"], told["conflict"], told["topic"]) == (True, "expression", TOPIC)
    assert taken == {first.client_id: 1, second.client_id: 1}
    page = admin_client.get(f"/clusters/local/groups/{GROUP}/subscriptions/").content.decode()
    assert "◆ A" in page
    assert "◆ B" in page
    found = admin_client.get(f"/api/v1/clusters/local/groups/{GROUP}/subscriptions/comparison").json()
    (finding,) = found["findings"]
    assert (finding["odd"], finding["is_tie"]) == ([second.client_id], True)
    assert (finding["in_force"], finding["winner"]) == ("B", second.client_id), "the newest version wins"
    began = RebalanceEvent.objects.get(kind=RebalanceKind.JOINED, client_id=second.client_id).at
    assert Event.objects.get(kind=EventKind.CONFLICT).at >= began

    broker.run(second.stop())
    wait_until(lambda: conflicts()[-1] == {"is_in_conflict": False}, what="the end of the conflict")
    assert taken == {first.client_id: 1, second.client_id: 1}
    assert "◆" not in page_table(admin_client)


def page_table(http: Client) -> str:
    html = http.get(f"/clusters/local/groups/{GROUP}/subscriptions/").content.decode()
    return html[html.index("<tbody>") : html.index("</tbody>")]
