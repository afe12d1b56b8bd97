"""Scripts on the websocket of events: the console as processes, real sockets, Redis between writer and web process."""

# ruff: noqa: F811 - fixtures are imported and asked for by the same name

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosedError
from websockets.sync.client import ClientConnection, connect

from tests.support.browser import Site, site, standing_site  # noqa: F401 - a fixture
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.redis]

ROOT = Path(__file__).parents[2]
# A deadline for what must come, on two cores that may be busy.
HEARD_WITHIN_S = 120.0


@contextmanager
def script(site: Site, **wanted: Any) -> Iterator[ClientConnection]:
    headers = {"Authorization": "Bearer mqa_story"}
    address = f"ws://127.0.0.1:{site.port}/ws/events"
    with connect(
        address, additional_headers=headers, open_timeout=HEARD_WITHIN_S, ping_interval=None, close_timeout=1
    ) as opened:
        opened.send(json.dumps({"type": "subscribe", **wanted}))
        assert json.loads(opened.recv(HEARD_WITHIN_S))["type"] == "subscribed"
        yield opened


def heard(opened: ClientConnection) -> Any:
    while True:
        frame = json.loads(opened.recv(HEARD_WITHIN_S))
        if frame["type"] != "heartbeat":
            return frame


@pytest.fixture
def told(site: Site) -> Site:
    site.carry_out("shop")
    site.carry_out("token", secret="mqa_story")
    return site


def test_script_is_told_what_happens_and_resumes_after_the_console_was_away(told: Site) -> None:
    with script(told, kinds=["verdict"]) as opened:
        told.carry_out("verdicts_turn", count=3)
        first = [heard(opened) for _ in range(3)]
        told.stop_web()
        with pytest.raises(ConnectionClosedError):
            heard(opened)
    told.carry_out("verdicts_turn", count=2)
    told.start_web()
    with script(told, after=first[-1]["id"]) as opened:
        told.carry_out("verdicts_turn", count=1)
        assert [heard(opened)["data"]["number"] for _ in range(3)] == [3, 4, 5]


def test_the_example_goes_on_where_it_stopped(told: Site, tmp_path: Path) -> None:
    place, lines = tmp_path / "last", tmp_path / "lines"

    def follow_until(count: int) -> None:
        command = [sys.executable, "examples/events/follow.py", f"ws://127.0.0.1:{told.port}", "--place", str(place)]
        environment = {**os.environ, "MQADMIN_TOKEN": "mqa_story"}
        with lines.open("a") as out, subprocess.Popen(command, cwd=ROOT, env=environment, stdout=out) as running:
            try:
                wait_until(place.exists, what="the first heartbeat")
                told.carry_out("verdicts_turn", count=1)
                wait_until(lambda: len(lines.read_text().splitlines()) >= count, what=f"{count} lines")
                wait_until(lambda: place.read_text() == str(json.loads(_last(lines))["id"]), what="the last number")
            finally:
                running.terminate()

    follow_until(1)
    told.carry_out("verdicts_turn", count=2)
    follow_until(4)
    assert [json.loads(line)["data"]["number"] for line in lines.read_text().splitlines()] == [0, 1, 2, 3]


def _last(lines: Path) -> str:
    return lines.read_text().splitlines()[-1]
