"""Time that passes, clocks that jump, processes that end."""

from __future__ import annotations

from collections.abc import Callable

from tests.simulation.broker.model import Place
from tests.simulation.broker.world import World


def operations(world: World) -> list[tuple[int, Callable[[], None]]]:
    return [
        (14, lambda: world.wait(world.chance.choice([1, 100, 1_000, 5_000, 12_000]))),
        (2, lambda: jump_clock(world)),
        (1, lambda: restart(world)),
        (3, lambda: kill(world)),
    ]


def jump_clock(world: World) -> None:
    world.broker.time.jump_ms += world.chance.choice([-20_000, -3_000, 3_000, 20_000])


def restart(world: World) -> None:
    world.broker.stop()
    world.begin_again()
    for (group, place), commits in world.model.commits.items():
        if commits:
            assert _committed(world, group, place) == commits[-1][1]


def kill(world: World) -> None:
    now_s = world.broker.time.now_s
    world.broker.kill()
    world.broker.time.now_s += world.chance.choice([0, 0.5, 30])
    world.begin_again()
    for group, place in list(world.model.commits):
        found = _committed(world, group, place)
        assert found in world.model.after_kill(group, place, now_s)
        world.model.commits[group, place] = [] if found is None else [(now_s, found)]


def _committed(world: World, group: str, place: Place) -> int | None:
    return world.broker.broker.groups.offsets.committed(group, *place)
