"""Sending: one by one, delayed by a level, in batches."""

from __future__ import annotations

from collections.abc import Callable

from remoting.wire.batch import encode_batch
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.headers.send import SendMessageHeaderV2
from remoting.wire.headers.typed import write_header
from remoting.wire.properties import Property, encode_properties
from tests.simulation.broker.model import Entry, Place
from tests.simulation.broker.world import QUEUES, SENDERS, World


def operations(world: World) -> list[tuple[int, Callable[[], None]]]:
    return [
        (20, lambda: send(world)),
        (5, lambda: send_batch(world)),
        (12, lambda: send_delayed(world)),
    ]


def send(world: World) -> None:
    place, entry = world.any_place(), world.new_entry()
    answer = send_entry(world, place, entry, {})
    assert answer.ext_fields["queueOffset"] == str(len(world.model.queues[place]))
    world.model.queues[place].append(entry)


def send_delayed(world: World) -> None:
    """Sometimes with a level above the highest, which counts as that."""
    place, entry, level = world.any_place(), world.new_entry(), world.chance.randrange(1, len(world.delays_ms) + 2)
    send_entry(world, place, entry, {Property.DELAY: str(level)})
    delay_ms = world.delays_ms[min(level, len(world.delays_ms)) - 1]
    world.awaits(place, entry, delay_ms)


def send_entry(world: World, place: Place, entry: Entry, properties: dict[str, str], sys_flag: int = 0) -> Command:
    if entry.tag is not None:
        properties[Property.TAGS] = entry.tag
    header = _header(world, place, encode_properties(properties), sys_flag)
    answer = world.client.ask(RequestCode.SEND_MESSAGE_V2, entry.body.encode(), **write_header(header))
    assert answer.code == ResponseCode.SUCCESS, answer.remark
    return answer


def send_batch(world: World) -> None:
    place = world.any_place()
    entries = [world.new_entry() for _ in range(world.chance.randrange(1, 6))]
    body = encode_batch(
        [(0, entry.body.encode(), {Property.TAGS: entry.tag} if entry.tag else {}) for entry in entries]
    )
    answer = world.client.ask(
        RequestCode.SEND_BATCH_MESSAGE, body, **write_header(_header(world, place, "", 0, batch=True))
    )
    assert answer.code == ResponseCode.SUCCESS, answer.remark
    assert answer.ext_fields["queueOffset"] == str(len(world.model.queues[place]))
    world.model.queues[place] += entries


def _header(world: World, place: Place, properties: str, sys_flag: int, *, batch: bool = False) -> SendMessageHeaderV2:
    return SendMessageHeaderV2(
        producer_group=SENDERS,
        topic=place[0],
        default_topic_queue_nums=QUEUES,
        queue_id=place[1],
        sys_flag=sys_flag,
        born_timestamp=world.broker.time.wall_ms(),
        flag=0,
        properties=properties,
        batch=batch,
    )
