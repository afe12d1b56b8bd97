"""Members of a broadcasting group, in Java and Python, each behind by its own word, on our broker and on Apache's."""

# ruff: noqa: F811 - fixtures are imported and asked for by the same name

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from channels.db import database_sync_to_async
from django.utils import timezone

from mqadmin.clusters import models
from mqadmin.clusters.models import ClusterKind, ClusterState, Group, Member
from mqadmin.lag import broadcasting
from mqadmin.observing import polling_cycle
from mqadmin.subscriptions import asking
from mqadmin.subscriptions.models import MemberAnswer
from tests.journeys.acting import cluster, java  # noqa: F401 - fixtures
from tests.support.slow_member import WARM_UP, slow_member
from tests.support.waiting import eventually

pytestmark = [pytest.mark.journey, pytest.mark.java, pytest.mark.django_db(transaction=True)]

WITHIN_S = 240
COUNT = 12


@pytest.fixture
def lags(cluster) -> Callable[[str], dict[str, int | None]]:
    """Observes once; returns by client id how far the members of a group are behind, by their own word."""
    there = models.Cluster.objects.create(name="there", namesrv=cluster.namesrv, kind=ClusterKind.APACHE)

    def look(group: str) -> dict[str, int | None]:
        MemberAnswer.objects.update(asked_at=None)
        asking.ask_round(there, timezone.now())
        polling_cycle.poll_once(there, timezone.now())
        models.Cluster.objects.filter(pk=there.pk).update(kind=ClusterKind.APACHE, state=ClusterState.REACHABLE)
        there.refresh_from_db()
        row = Group.objects.filter(name=group).first()
        if row is None:
            return {}
        names = dict(Member.objects.filter(group=row).values_list("pk", "client_id"))
        return {names[pk]: one.lag for pk, one in broadcasting.of_members(row).items()}

    return look


async def test_each_member_of_a_broadcasting_group_has_its_own_lag(cluster, java, fresh, lags, tmp_path: Path) -> None:
    topic, group, first = fresh("prices"), fresh("caches"), fresh("first")
    settings = {"messageModel": "BROADCASTING", "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET"}
    look = database_sync_to_async(lags)
    own = {"is_broadcasting": True, "offsets_folder": tmp_path}
    async with slow_member(cluster.namesrv, topic, group, fresh("sender"), **own) as member:
        java_id = await asyncio.to_thread(java.consumer, first, group, topic, set=settings)
        try:
            await asyncio.to_thread(java.wait_events, "consumed", WARM_UP, first)
            await eventually(lambda: member.given == WARM_UP, WITHIN_S)
            await member.send_slow(COUNT)

            row_of = database_sync_to_async(Group.objects.get)

            async def is_told() -> bool:
                told = await look(group)
                return told == {member.client_id: COUNT, java_id: 0} and (await row_of(name=group)).lag == COUNT

            await eventually(is_told, WITHIN_S, "the Python member is behind, the one in Java is not")
            row = await row_of(name=group)
            assert row.lag == COUNT
            assert row.verdict_rule != "broadcast"
            member.goes_on.set()

            async def is_over() -> bool:
                return set((await look(group)).values()) == {0}

            await eventually(is_over, WITHIN_S, "both have consumed everything")
        finally:
            await asyncio.to_thread(java.stop, first)
