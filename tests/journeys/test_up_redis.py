"""Redis gone and back under a running install: a line each in the log, and everything goes on."""

from __future__ import annotations

import re
import urllib.request
from pathlib import Path

import pytest

from tests.support.broker_probe import BrokerProbe
from tests.support.install import Install
from tests.support.redis_server import SOCKET_NAME, RedisServer
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.redis, pytest.mark.timeout(1800)]

WORKERS = ("scheduler", "following", "loops-1", "loops-2", "jobs", "reports")
# Celery tries to connect after 2, 4, 6 … s, 30 at most.
CONNECTED_WITHIN_S = 150.0


def consumed(install: Install, group: str = "mailing") -> int:
    """The sum of the group's committed offsets."""
    body = BrokerProbe(install.broker).watch()
    return sum(item.committed_offset for item in body.committed if item.group == group and item.topic == "orders")


def goes_on_consuming(install: Install, within_s: float) -> None:
    before = consumed(install)
    wait_until(lambda: consumed(install) > before + 5, within_s, "more orders consumed and committed")


def page_answers(install: Install) -> bool:
    with urllib.request.urlopen(install.web) as answer:
        return bool(answer.status == 200)


def said(install: Install, process: str, text: str) -> int:
    """How many lines of the process hold `text`."""
    return len(re.findall(rf"^\S+ {process}\s.*{re.escape(text)}", install.output(), re.MULTILINE))


def has_no_traceback(install: Install, since: int) -> None:
    log = install.output()[since:]
    assert "Traceback" not in log, log
    assert "Trying again" not in log, log


def test_an_outside_redis_stopped_and_started(tmp_path: Path) -> None:
    with (
        RedisServer(tmp_path) as redis,
        Install(tmp_path / "data", "--demo", env={"MQADMIN_INSTANCES": "4", "REDIS_URL": redis.url}) as install,
    ):
        wait_until(lambda: consumed(install) > 0, what="the first orders consumed")
        began = len(install.output())
        redis.stop()
        for worker in WORKERS:
            wait_until(lambda worker=worker: said(install, worker, "does not answer"), what=f"{worker}'s line")
        goes_on_consuming(install, 60)
        assert page_answers(install)
        redis.start()
        for worker in WORKERS:
            wait_until(lambda worker=worker: said(install, worker, "answers again"), what=f"{worker}'s line")
        goes_on_consuming(install, 60)
        # Tasks pass again: a change of what is wanted reaches the workers.
        install.manage(
            "shell", "-c", "from consumer.models import HostedGroup as G; G.objects.update(wanted_instances=1)"
        )
        wait_until(lambda: "was asked to stop" in ended(install), CONNECTED_WITHIN_S, "an instance stopped by a task")
        for worker in WORKERS:
            assert (said(install, worker, "does not answer"), said(install, worker, "answers again")) == (1, 1)
        has_no_traceback(install, began)


def ended(install: Install) -> str:
    read = "from consumer.models import InstanceLease as L; print([*L.objects.values_list('end_reason', flat=True)])"
    return install.manage("shell", "-c", read)


@pytest.mark.parametrize("path", [{}, {"PATH": ""}], ids=["as here", "the wheel's"])
def test_the_embedded_redis_killed_is_started_again_and_everything_goes_on(
    tmp_path: Path, path: dict[str, str]
) -> None:
    with Install(tmp_path / "data", "--demo", env={"MQADMIN_INSTANCES": "4", **path}) as install:
        wait_until(lambda: consumed(install) > 0, what="the first orders consumed")
        began = len(install.output())
        install.child(SOCKET_NAME).kill()
        goes_on_consuming(install, 60)
        wait_until(lambda: install.children(SOCKET_NAME), what="Redis started again")
        assert page_answers(install)
        install.manage(
            "shell", "-c", "from consumer.models import HostedGroup as G; G.objects.update(wanted_instances=1)"
        )
        wait_until(lambda: "was asked to stop" in ended(install), CONNECTED_WITHIN_S, "an instance stopped by a task")
        assert said(install, "redis", "ended (signal 9)") == 1
        has_no_traceback(install, began)
