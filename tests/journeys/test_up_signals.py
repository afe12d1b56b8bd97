"""Children of `manage.py up` that get signals in bursts, as a parent's death and an impatient operator send them."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import psutil
import pytest

from tests.support.install import Install
from tests.support.tools import require
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.redis, pytest.mark.timeout(240)]

# The longest grace that `up` itself gives a child, and a little more.
GONE_WITHIN_S = 25.0
PAUSES_S = (0.0, 0.0, 0.001, 0.005, 0.02)


@pytest.fixture(autouse=True)
def _on_linux() -> None:
    require(os.path.isdir("/proc"), "the supervisor's guarantees need Linux")


@pytest.fixture
def install(tmp_path: Path):
    with Install(tmp_path / "data", "--demo", env={"MQADMIN_INSTANCES": "4"}) as started:
        yield started


@pytest.mark.parametrize("seed", [1, 2])
def test_every_child_ends_by_a_burst_of_two_to_ten_signals_after_the_kill_of_up(install: Install, seed: int) -> None:
    """The kernel's SIGTERM at the parent's death is one more of them."""
    chance = random.Random(seed)
    children = install.children()
    burst = [
        (child, chance.choice((signal.SIGTERM, signal.SIGINT)))
        for child in children
        for _ in range(chance.randint(2, 10))
    ]
    chance.shuffle(burst)
    install.signal(signal.SIGKILL)
    for child, number in burst:
        time.sleep(chance.choice(PAUSES_S))
        send(child, number)
    wait_until(lambda: not install.left_behind(), GONE_WITHIN_S, "the end of all children")


def test_every_child_ends_by_sigterm_to_its_whole_process_group(install: Install) -> None:
    """As systemd and containers send it, and with SIGINT a shell: the workers' own children get it as well."""
    groups = [child.pid for child in install.children()]
    install.signal(signal.SIGKILL)
    for group in groups:
        for number in (signal.SIGTERM, signal.SIGINT):
            try:
                os.killpg(group, number)
            except ProcessLookupError:
                pass
    wait_until(lambda: not install.left_behind(), GONE_WITHIN_S, "the end of all children")


def send(process: psutil.Process, number: int) -> None:
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        pass
