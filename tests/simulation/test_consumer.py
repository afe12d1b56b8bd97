"""Random lives of a consumer group beside a checker of its history, in virtual time over a network in memory.

Members join, leave, are killed, paused and cut off, connections are lost or stand still, the broker is stopped or
killed and started again. The members are whole consumers, the broker is a whole one.

TORTURE=1 pytest tests/simulation/test_consumer.py           more and longer lives
CONSUMER_SEED=4711 pytest tests/simulation/test_consumer.py  that one again
"""

from __future__ import annotations

import os
import random
import secrets
import time
from pathlib import Path

import pytest

from tests.simulation.consumer.world import World

pytestmark = pytest.mark.simulation

TORTURE = bool(os.environ.get("TORTURE"))
LIVES = 400 if TORTURE else 4
LIVES_PER_TEST = 4
STEPS = 300 if TORTURE else 120
SEEDS = [int(os.environ["CONSUMER_SEED"])] if "CONSUMER_SEED" in os.environ else None


def live(world: World) -> None:
    world.join()
    weights, calls = zip(*world.operations(), strict=True)
    for _ in range(STEPS):
        world.chance.choices(calls, weights)[0]()
        assert not world.history.wrong
    world.calm_down()
    assert not world.history.wrong
    assert not world.history.lost


@pytest.mark.parametrize("is_orderly", [True, False], ids=["in order", "concurrently"])
@pytest.mark.parametrize("first", SEEDS or range(0, LIVES, LIVES_PER_TEST))
def test_nothing_is_lost_and_order_is_kept_whatever_happens(
    tmp_path: Path, first: int, is_orderly: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)  # nobody loses power here
    for seed in [first] if SEEDS else range(first, first + LIVES_PER_TEST):
        random.seed(seed)
        ids = random.Random(seed)
        monkeypatch.setattr(secrets, "token_hex", lambda count, ids=ids: ids.randbytes(count).hex())
        world = World(tmp_path / str(seed), seed, is_orderly=is_orderly)
        with monkeypatch.context() as patched:
            patched.setattr(time, "perf_counter", lambda world=world: world.broker.time.now_s)
            try:
                live(world)
            except BaseException as error:
                error.add_note(f"CONSUMER_SEED={seed}; {world.history.twice_count} messages came twice")
                world.drop()
                raise
