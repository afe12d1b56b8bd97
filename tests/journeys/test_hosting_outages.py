"""Consumption goes on while the database or Redis is away, and what the wanted number says holds again afterwards.

TORTURE=1 pytest tests/journeys/test_hosting_outages.py      each away for a minute
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.support.gaps import CommittedOffsets
from tests.support.hosting_stage import RecordingStage
from tests.support.our_broker import OurBroker
from tests.support.postgres import PostgresServer
from tests.support.redis_server import RedisServer
from tests.support.traffic import Traffic
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.crash, pytest.mark.redis]

TOPIC = "records"
GROUPS = ("plain", "async")
AWAY_S = 60 if os.environ.get("TORTURE") else 12
# Less than the outage. After 30 s without a database supervision takes instances for lost when it is back, and starts
# them anew.
GAP_S_MAX = 8.0

Server = RedisServer | PostgresServer


@pytest.fixture(params=["redis", pytest.param("database", marks=pytest.mark.postgres)])
def staged(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[RecordingStage, Server]]:
    """An install, and the part of it that goes away."""
    # Unix socket paths are short.
    folder = tmp_path_factory.mktemp("out")
    with ExitStack() as stack:
        redis = stack.enter_context(RedisServer(folder))
        broker = stack.enter_context(OurBroker(folder / "store", patient=True))
        server: Server = redis
        env = {}
        if request.param == "database":
            server = postgres = stack.enter_context(PostgresServer())
            env["DATABASE_URL"] = postgres.url
        stage = RecordingStage(folder, redis, broker, env)
        stack.enter_context(stage.supervised())
        yield stage, server


def test_consumption_goes_on_while_a_server_is_away(staged: tuple[RecordingStage, Server]) -> None:
    stage, server = staged
    with Traffic(stage.broker.namesrv, TOPIC) as traffic, stage.worker("loops-1", "loops", 6):
        wait_until(lambda: all(len(stage.running(group)) == 1 for group in GROUPS), what="an instance of each group")
        wait_until(lambda: len(stage.probe.committed("plain", TOPIC)) == 4, what="commits of all queues")
        wait_until(lambda: all(len(stage.members(group)) == 1 for group in GROUPS), what="one member of each group")
        members = {group: stage.members(group) for group in GROUPS}
        with (
            CommittedOffsets(stage.probe, "plain", TOPIC) as plain,
            CommittedOffsets(stage.probe, "async", TOPIC) as not_plain,
        ):
            # kombu would hand these back through the connection that is gone, and end the workers.
            stage.hand_out("jobs", "loops")
            server.stop()
            away_since_s = time.monotonic()
            wait_until(lambda: time.monotonic() - away_since_s > AWAY_S, AWAY_S + 5, "the end of the outage")
            sent = list(traffic.sent)
            wait_until(lambda: stage.is_consumed(GROUPS, sent), what="what was sent meanwhile")

            def are_there() -> bool:
                now = {group: stage.members(group) for group in GROUPS}
                assert all(now[group] <= members[group] for group in GROUPS), "somebody else joined"
                return now == members

            wait_until(are_there, what="the same members")
            server.start()
            wait_until(lambda: all(len(stage.running(group)) == 1 for group in GROUPS), what="the wanted number")
            stage.want("plain", 2)
            wait_until(lambda: len(stage.running("plain")) == 2, what="supervision that works again")
            wait_until(lambda: len(stage.members("plain")) == 2, what="two members")
            traffic.stop()
            wait_until(lambda: stage.is_consumed(GROUPS, traffic.sent), what="all consumed")
    for offsets in (plain, not_plain):
        assert offsets.longest_gap_s < GAP_S_MAX
        assert offsets.backwards == []
