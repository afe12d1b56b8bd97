"""Random lives of a whole broker beside a plain model: clients, delays, retries, long polls, kills, a clock that jumps.

Virtual time, so that a life of hours takes milliseconds; the seed is printed on failure.

TORTURE=1 pytest tests/simulation/test_broker.py       more and longer lives
BROKER_SEED=4711 pytest tests/simulation/test_broker.py      that one again
"""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import pytest

from tests.simulation.broker import consuming, disaster, members, sending, timing, transacting
from tests.simulation.broker.world import DELAYS_MS, World

pytestmark = pytest.mark.simulation

TORTURE = bool(os.environ.get("TORTURE"))
LIVES = 50_000 if TORTURE else 200
LIVES_PER_TEST = 100
STEPS = 60
SEEDS = [int(os.environ["BROKER_SEED"])] if "BROKER_SEED" in os.environ else None

SUBJECTS = (sending, timing, consuming, members, transacting, disaster)


def live(world: World) -> None:
    operations: list[tuple[int, Callable[[], None]]] = list(
        chain.from_iterable(subject.operations(world) for subject in SUBJECTS)
    )
    weights, calls = zip(*operations, strict=True)
    for _ in range(STEPS):
        world.chance.choices(calls, weights)[0]()
        world.look()


def end(world: World) -> None:
    """All that was ever accepted is seen in the end."""
    disaster.kill(world)
    world.wait(2 * DELAYS_MS[-1])
    world.wait(30_000)
    world.look()
    assert not world.model.awaited
    assert world.broker.store.verify().is_sound
    world.broker.stop()


@pytest.mark.parametrize("first", SEEDS or range(0, LIVES, LIVES_PER_TEST))
def test_a_broker_shows_what_a_plain_model_says(tmp_path: Path, first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)  # nobody loses power here
    for seed in [first] if SEEDS else range(first, first + LIVES_PER_TEST):
        world = World(tmp_path / str(seed), seed)
        try:
            live(world)
            end(world)
        except Exception as error:
            error.add_note(f"BROKER_SEED={seed}")
            world.broker.kill()
            raise
