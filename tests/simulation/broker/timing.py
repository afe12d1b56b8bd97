"""Messages for a time of their own, and taking them back; a table of delay levels that changes."""

from __future__ import annotations

from collections.abc import Callable

from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.headers.recall import RecallMessageHeader
from remoting.wire.headers.typed import write_header
from remoting.wire.properties import Property
from tests.simulation.broker.model import Awaited
from tests.simulation.broker.sending import send_entry
from tests.simulation.broker.world import DELAYS_MS, SENDERS, World

# Longer, shorter, and other numbers of levels; what waits keeps its time.
TABLES_MS = (DELAYS_MS, DELAYS_MS[:1], DELAYS_MS[::-1], 6 * (2_000,), (30_000, 1_000))


def operations(world: World) -> list[tuple[int, Callable[[], None]]]:
    return [
        (10, lambda: send_for_time(world)),
        (3, lambda: recall(world)),
        (2, lambda: change_levels(world)),
    ]


def send_for_time(world: World) -> None:
    """Now and then for one that is over: such a message does not wait."""
    place, entry, now_ms = world.any_place(), world.new_entry(), world.broker.time.wall_ms()
    delay_ms = world.chance.choice([-5, 0, 1, 999, 1_000, 2_345, 10_000, 45_678])
    properties = {Property.UNIQ_KEY: f"KEY-{entry.body.replace(' ', '-')}"}
    if delay_ms > 0 and world.chance.random() < 0.5:
        properties[Property.TIMER_DELAY_MS] = str(delay_ms)
    else:
        properties[Property.TIMER_DELIVER_MS] = str(now_ms + delay_ms)
    answer = send_entry(world, place, entry, properties)
    if delay_ms <= 0:
        assert answer.ext_fields["queueOffset"] == str(len(world.model.queues[place]))
        world.model.queues[place].append(entry)
        return
    awaited = Awaited(place, entry, now_ms + delay_ms)
    world.model.awaited.append(awaited)
    world.model.handles.append((awaited, answer.ext_fields["recallHandle"]))


def recall(world: World) -> None:
    """What still waits is never seen; what was seen stays. Times are known to the second: the last one is too late."""
    handles = [one for one in world.model.handles if one[0].due_ms > world.broker.time.wall_ms()]
    if not handles:
        return
    awaited, handle = world.chance.choice(handles)
    header = RecallMessageHeader(producer_group=SENDERS, topic=awaited.place[0], recall_handle=handle)
    answer = world.client.ask(RequestCode.RECALL_MESSAGE, **write_header(header))
    if answer.code == ResponseCode.ILLEGAL_OPERATION:
        assert awaited.due_ms - world.broker.time.wall_ms() <= 1_000, answer.remark
        return
    assert answer.code == ResponseCode.SUCCESS, answer.remark
    if awaited in world.model.awaited:
        world.model.awaited.remove(awaited)


def change_levels(world: World) -> None:
    delays_ms = world.chance.choice(TABLES_MS)
    text = " ".join(f"{delay_ms // 1_000}s" for delay_ms in delays_ms)
    answer = world.client.ask(RequestCode.UPDATE_BROKER_CONFIG, f"messageDelayLevel={text}".encode())
    assert answer.code == ResponseCode.SUCCESS, answer.remark
    world.delays_ms = delays_ms
