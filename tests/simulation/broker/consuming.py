"""Consuming: pulls that answer at once and pulls that wait, committed offsets, messages sent back."""

from __future__ import annotations

from collections.abc import Callable

from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.headers.groups import SendMessageBackHeader
from remoting.wire.headers.pull import SUBSCRIPTION_FLAG, SUSPEND_FLAG, PullMessageHeader
from remoting.wire.headers.typed import write_header
from remoting.wire.names import dlq_topic, retry_topic
from tests.simulation.broker.model import Entry, Held, Place
from tests.simulation.broker.world import GROUPS, TAGS, TOPICS, WATCHED, World

RETRIES_MAX = 2
FIRST_RETRY_LEVEL = 3
SUSPEND_MS = 15_000


def operations(world: World) -> list[tuple[int, Callable[[], None]]]:
    return [
        (12, lambda: pull(world, suspends=False)),
        (8, lambda: pull(world, suspends=True)),
        (10, lambda: send_back(world)),
        (8, lambda: commit(world)),
    ]


def pull(world: World, *, suspends: bool) -> None:
    """One that may wait asks at the end of the queue."""
    place = world.any_place() if world.chance.random() < 0.7 else (world.chance.choice(WATCHED), 0)
    end = len(world.model.queues[place])
    offset = end if suspends else world.chance.randrange(end + 1)
    tag, name = world.chance.choice(TAGS), world.any_client()
    header = _pull_header(place, offset, tag, suspends=suspends)
    opaque = world.clients[name].send(RequestCode.PULL_MESSAGE, **write_header(header))
    answer = world.clients[name].answer(opaque)
    if answer is None:
        assert suspends
        deadline_s = world.broker.time.now_s + SUSPEND_MS / 1000
        world.model.held.append(Held(name, opaque, place, offset, tag, deadline_s))
    elif answer.code in (ResponseCode.TOPIC_NOT_EXIST, ResponseCode.INVALID_PARAMETER):
        assert not end, answer.remark
    else:
        assert not suspends
        world.check_pulled(answer, place, offset, tag)


def _pull_header(place: Place, offset: int, tag: str | None, *, suspends: bool) -> PullMessageHeader:
    return PullMessageHeader(
        consumer_group="billing",
        topic=place[0],
        queue_id=place[1],
        queue_offset=offset,
        max_msg_nums=32,
        sys_flag=SUBSCRIPTION_FLAG | (SUSPEND_FLAG if suspends else 0),
        commit_offset=0,
        suspend_timeout_millis=SUSPEND_MS,
        subscription=tag or "*",
        sub_version=0,
    )


def send_back(world: World) -> None:
    """A member of a group failed with some message of a topic, or of the group's own retries."""
    group = world.chance.choice(GROUPS)
    readable = (*TOPICS, retry_topic(group))
    places = [place for place, entries in world.model.queues.items() if entries and place[0] in readable]
    if not places:
        return
    place = world.chance.choice(places)
    message = world.read(place, world.chance.randrange(len(world.model.queues[place])))[0]
    level = world.chance.choice([0, 0, 0, 1, -1])
    header = SendMessageBackHeader(
        offset=message.commit_log_offset, group=group, delay_level=level, max_reconsume_times=RETRIES_MAX
    )
    answer = world.client.ask(RequestCode.CONSUMER_SEND_MSG_BACK, **write_header(header))
    assert answer.code == ResponseCode.SUCCESS, answer.remark
    entry = Entry(message.body.decode(), message.tags, message.reconsume_times + 1)
    if message.reconsume_times >= RETRIES_MAX or level < 0:
        world.model.queues[dlq_topic(group), 0].append(entry)
        return
    level = min(level or FIRST_RETRY_LEVEL + message.reconsume_times, len(world.delays_ms))
    delay_ms = world.delays_ms[level - 1]
    world.awaits((retry_topic(group), 0), entry, delay_ms)


def commit(world: World) -> None:
    group, (topic, queue_id) = world.chance.choice(GROUPS), world.any_place()
    offset = world.chance.randrange(len(world.model.queues[topic, queue_id]) + 1)
    answer = world.client.ask(
        RequestCode.UPDATE_CONSUMER_OFFSET,
        consumerGroup=group,
        topic=topic,
        queueId=queue_id,
        commitOffset=offset,
    )
    assert answer.code == ResponseCode.SUCCESS, answer.remark
    world.model.commit(group, (topic, queue_id), offset, world.broker.time.now_s)
