"""Members that come and go, and the queue locks they ask for."""

from __future__ import annotations

from collections.abc import Callable

from remoting.wire import lenient_json
from remoting.wire.codes import RequestCode, ResponseCode
from tests.simulation.broker.model import Place
from tests.simulation.broker.world import GROUPS, World


def operations(world: World) -> list[tuple[int, Callable[[], None]]]:
    return [
        (4, lambda: join(world)),
        (2, lambda: hang_up(world)),
        (3, lambda: ask_members(world)),
        (6, lambda: lock(world)),
        (2, lambda: unlock(world)),
    ]


def join(world: World) -> None:
    name, group = world.any_client(), world.chance.choice(GROUPS)
    world.beat(name, group)
    world.model.members[group].add(name)


def hang_up(world: World) -> None:
    """Its locks stay until they expire."""
    name = world.any_client()
    world.clients[name].hang_up()
    world.connect_client(name)
    for members in world.model.members.values():
        members.discard(name)
    world.model.held = [held for held in world.model.held if held.client != name]


def ask_members(world: World) -> None:
    for group in GROUPS:
        answer = world.client.ask(RequestCode.GET_CONSUMER_LIST_BY_GROUP, consumerGroup=group)
        members = world.model.members[group]
        if members:
            assert set(lenient_json.loads(answer.body)["consumerIdList"]) == members
        else:
            assert answer.code == ResponseCode.SYSTEM_ERROR


def lock(world: World) -> None:
    """Granted are the queues that nobody else holds, or held and did not ask for again within 60 s."""
    name, group, places = _lock_request(world)
    answer = world.clients[name].ask(RequestCode.LOCK_BATCH_MQ, _lock_body(name, group, places))
    assert answer.code == ResponseCode.SUCCESS, answer.remark
    granted = {(queue["topic"], queue["queueId"]) for queue in lenient_json.loads(answer.body)["lockOKMQSet"]}
    assert granted == world.model.lock(group, name, places, world.broker.time.now_s)


def unlock(world: World) -> None:
    name, group, places = _lock_request(world)
    answer = world.clients[name].ask(RequestCode.UNLOCK_BATCH_MQ, _lock_body(name, group, places))
    assert answer.code == ResponseCode.SUCCESS, answer.remark
    world.model.unlock(group, name, places)


def _lock_request(world: World) -> tuple[str, str, set[Place]]:
    places = {world.any_place() for _ in range(world.chance.randrange(1, 4))}
    return world.any_client(), world.chance.choice(GROUPS), places


def _lock_body(name: str, group: str, places: set[Place]) -> bytes:
    queues = [{"topic": topic, "brokerName": "broker-a", "queueId": queue_id} for topic, queue_id in sorted(places)]
    return lenient_json.dumps({"consumerGroup": group, "clientId": name, "mqSet": queues})
