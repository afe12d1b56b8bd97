"""Replays of dead letters that the database alone knows, driven in virtual time."""

from __future__ import annotations

from itertools import count as counting

import pytest
from django.utils import timezone

from mqadmin.clusters.models import Cluster
from mqadmin.deadletters.models import DeadLetter, Failure, KeptMessage
from mqadmin.replays.models import ReplayJob
from mqadmin.replays.states import Target
from tests.support import console_rows as seed
from tests.support.patience import let_console_wait
from tests.support.replay_gateway import BROKER, ReplayBroker, in_place
from tests.support.virtual_time import VirtualTime

_names = counting()


@pytest.fixture(autouse=True)
def _patient_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    let_console_wait(monkeypatch)


@pytest.fixture
def silent_cluster(db: None) -> Cluster:
    now = timezone.now()
    cluster = seed.make_cluster("there", now=now)
    seed.make_broker(cluster, BROKER, now=now, address="broker:1")
    return cluster


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> ReplayBroker:
    """The broker that every replay of the test is driven against."""
    broker = ReplayBroker(VirtualTime())
    in_place(monkeypatch, broker)
    return broker


def replay_of(cluster: Cluster, count: int, **values: object) -> ReplayJob:
    """Returns a replay of so many dead letters."""
    now = timezone.now()
    failure = Failure.objects.create(
        cluster=cluster, group_name="billing", identity=f"one {next(_names)}", first_dead_at=now, last_dead_at=now
    )
    first = DeadLetter.objects.count()
    rows = DeadLetter.objects.bulk_create(
        DeadLetter(
            cluster=cluster,
            failure=failure,
            group_name="billing",
            broker_name=BROKER,
            queue_id=0,
            queue_offset=number,
            dead_at=now,
            message_id=f"m{number}",
            origin_topic="orders",
        )
        for number in range(first, first + count)
    )
    KeptMessage.objects.bulk_create(
        KeptMessage(dead_letter=row, properties={"UNIQ_KEY": row.message_id}, body=row.message_id.encode())
        for row in rows
    )
    fields: dict[str, object] = {
        "identity": f"job {next(_names)}",
        "group_name": "billing",
        "selection": {"failure": failure.pk},
        "until_id": DeadLetter.objects.order_by("-pk").values_list("pk", flat=True)[0],
        "target": Target.ORIGIN,
        "rate_per_s": 10_000,
        "stop_percent": 0,
        "created_at": now,
    }
    return ReplayJob.objects.create(cluster=cluster, **(fields | values))
