"""`manage.py up` and its roles, with SIGTERM to every process at once, and with bursts of signals.

systemd sends SIGTERM to all processes of a service (KillMode=control-group), containers often do; a parent's death and
an impatient operator send several.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest

from tests.support.broker_probe import BrokerProbe
from tests.support.children import Child, free_port
from tests.support.install import Install
from tests.support.migrated import bring_migrated_database
from tests.support.redis_server import RedisServer
from tests.support.tools import require
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.redis, pytest.mark.timeout(1800)]

ROOT = Path(__file__).parents[2]
# The longest grace that `up` itself gives a child, and a little more.
GONE_WITHIN_S = 90.0
PAUSES_S = (0.0, 0.0, 0.001, 0.005, 0.02)
# Signs of a stop that was not in order.
DISORDER = ("Traceback", "killed", "starting again", "WorkerLost", "exited with")


@pytest.fixture(autouse=True)
def _on_linux() -> None:
    require(os.path.isdir("/proc"), "the supervisor's guarantees need Linux")


@pytest.fixture
def install(tmp_path: Path):
    with Install(tmp_path / "data", "--demo", env={"MQADMIN_INSTANCES": "4"}) as started:
        yield started


def sigterm_to_all(install: Install) -> int:
    """As systemd sends it; returns the exit code of `up`."""
    for process in install.processes():
        install.seen.add(process)
        send(process, signal.SIGTERM)
    return install.wait()


def test_sigterm_to_every_process_of_an_idle_install_ends_it_in_order(tmp_path: Path) -> None:
    with Install(tmp_path / "data", env={"MQADMIN_INSTANCES": "2"}) as install:
        assert sigterm_to_all(install) == 0
        assert not install.left_behind()
        assert not (install.data / "redis.sock").exists()
        stopping = install.output().partition("stopping")[2]
        assert "all stopped" in stopping
        assert [sign for sign in DISORDER if sign in stopping] == []


def test_sigterm_to_every_process_with_messages_in_hand_neither_loses_nor_repeats_one(tmp_path: Path) -> None:
    noted = tmp_path / "noted"
    env = {"MQADMIN_INSTANCES": "2", "MQADMIN_APPS": "tests.support.noting", "NOTED": str(noted)}
    # All of them would take 300 s, longer than a busy machine needs to get here; after the restart they take no time.
    env["NOTING_TAKES_S"], count = "3", 4000
    with Install(tmp_path / "data", env=env) as install:
        # One that joins later would take queues over while their messages are in hand, and repeat some.
        wait_until(lambda: len(BrokerProbe(install.broker).members("noting")) == 2, what="both instances")
        traffic = [sys.executable, "manage.py", "shop_traffic", "--count", str(count), "--rate", "1000"]
        subprocess.run(
            traffic, cwd=ROOT, env={**os.environ, **install.environment, "MQADMIN_APPS": "examples.shop"}, check=True
        )
        sent_count, probe = count, BrokerProbe(install.broker)

        def stored_count() -> int:
            return sum(probe.max_offsets("orders").values())

        # A broker that answers too late has stored what its sender counts as lost, and sends anew.
        wait_until(lambda: stored_count() >= sent_count, what="all that was sent")
        count = stored_count()
        wait_until(lambda: lines_of(noted), what="the first messages finished")
        assert sigterm_to_all(install) == 0
        stopping = install.output().partition("stopping")[2]
        assert [sign for sign in DISORDER if sign in stopping] == []
        before = len(lines_of(noted))
        assert 0 < before < count, "the stop came while messages were in hand"

        # One instance, for the same reason.
        env |= {"NOTING_TAKES_S": "0", "MQADMIN_INSTANCES": "1"}
        install.start()
        wait_until(lambda: len(set(lines_of(noted))) == count, what="all messages finished")
        assert [message for message, times in Counter(lines_of(noted)).items() if times > 1] == []


def lines_of(file: Path) -> list[str]:
    return file.read_text().split() if file.exists() else []


def test_each_role_on_its_own_ends_with_0_by_sigterm_to_its_process_group(tmp_path: Path) -> None:
    """As separate units run them: Redis and the broker have units of their own, and end after the others here."""
    with RedisServer(tmp_path) as redis:
        namesrv, broker, web = free_port(), free_port(), free_port()
        env = {
            "MQADMIN_DATA": str(tmp_path / "data"),
            "MQADMIN_NAMESRV": f"127.0.0.1:{namesrv}",
            "MQADMIN_WEB": f"127.0.0.1:{web}",
            "MQADMIN_APPS": "examples.shop",
            "DATABASE_URL": "",
            "REDIS_URL": redis.url,
            "C_FORCE_ROOT": "1",
            "PYTHONUNBUFFERED": "1",
        }
        manage = [sys.executable, "manage.py"]
        bring_migrated_database(tmp_path / "data")
        roles = {
            "web": [sys.executable, "-m", "mqadmin.web"],
            "beat": [sys.executable, "-m", "celery", "-A", "mqadmin", "beat", "-l", "INFO", "--pidfile="],
            **{queue: worker(queue) for queue in ("scheduler", "following", "loops", "jobs")},
            "broker": [*manage, "runbroker", "--namesrv-port", str(namesrv), "--port", str(broker)],
        }
        ready = {"web": None, "beat": "beat: Starting", "broker": "broker ready"}
        children = {
            name: Child(command, tmp_path / f"{name}.log", cwd=ROOT, env=env) for name, command in roles.items()
        }
        try:
            for name, child in children.items():
                text = ready.get(name, " ready.")
                if text is None:
                    wait_until(lambda: is_listening(web), what="the console's port")
                else:
                    wait_until(lambda child=child, text=text: text in child.output(), what=f"{name}: {text}")
            codes = {}
            for name, child in children.items():
                os.killpg(child.pid, signal.SIGTERM)
                codes[name] = child.process.wait(GONE_WITHIN_S)
            assert codes == dict.fromkeys(roles, 0)
            signs = {name: [sign for sign in DISORDER if sign in child.output()] for name, child in children.items()}
            assert signs == {name: [] for name in roles}
        finally:
            for child in children.values():
                child.kill()


def worker(queue: str) -> list[str]:
    pool = ("-P", "threads") if queue == "following" else ()
    command = [sys.executable, "-m", "celery", "-A", "mqadmin", "worker", "-Q", queue, "-n", f"{queue}@%h", *pool]
    return [*command, "-c", "2", "-l", "INFO", "--without-gossip", "--without-mingle", "--without-heartbeat"]


def is_listening(port: int) -> bool:
    return any(
        connection.status == psutil.CONN_LISTEN and connection.laddr.port == port
        for connection in psutil.net_connections("tcp")
        if connection.laddr
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_every_child_ends_by_a_burst_of_two_to_ten_signals_after_the_kill_of_up(install: Install, seed: int) -> None:
    """The kernel's signal at the parent's death is one more of them."""
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
    wait_for_the_end_of_all(install)


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
    wait_for_the_end_of_all(install)


def wait_for_the_end_of_all(install: Install) -> None:
    wait_until(lambda: not install.left_behind(), GONE_WITHIN_S, lambda: f"the end of {install.left_behind()}")


def send(process: psutil.Process, number: int) -> None:
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        pass
