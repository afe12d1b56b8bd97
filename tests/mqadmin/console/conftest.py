"""A cluster with a topic and a group in trouble, and somebody who is logged in."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from django.apps import apps
from django.test import Client
from django.utils import timezone

from mqadmin.clusters.models import Cluster, Group
from mqadmin.console.fragments import SharedFragments
from tests.support import console_rows as seed
from tests.support.people import give_session


@pytest.fixture(autouse=True)
def _fragments_of_this_test() -> Iterator[None]:
    """The fragments that pages share belong to the process; here to one test, and none expires during it."""
    console = apps.get_app_config("mq_console")
    before, console.fragments = console.fragments, SharedFragments(age_max_s=3600)
    yield
    console.fragments = before


@pytest.fixture
def now() -> datetime:
    return timezone.now()


@pytest.fixture
def http(db, django_user_model) -> Client:
    client = Client()
    give_session(client, django_user_model.objects.create_superuser("admin"))
    return client


@pytest.fixture
def cluster(db, now) -> Cluster:
    cluster = seed.make_cluster("local", now=now)
    seed.make_broker(cluster, now=now)
    return cluster


@pytest.fixture
def group(cluster, now) -> Group:
    """Stalled: 12,049 messages wait on queue 0 of orders, pulled by 10.0.3.7@2211#1."""
    seed.make_topic(cluster, "orders", now=now)
    group = seed.make_group(
        cluster,
        "billing",
        now=now,
        verdict="stalled",
        verdict_rule="offset_stands",
        verdict_numbers={"members": 1, "lag": 12_049},
        lag=12_049,
        lag_shape="growing",
        behind_since=now - timedelta(minutes=21, seconds=4),
        behind_method="observed",
        member_count=1,
    )
    seed.make_member(group, "10.0.3.7@2211#1", now=now)
    seed.make_queue_offset(group, "orders", 0, now=now, owner="10.0.3.7@2211#1", lag=12_049, committed_offset=120_331)
    seed.make_subscription(group, "orders", "paid || refunded", now=now)
    seed.make_subscription(group, "orders", "paid || refunded", now=now, client_id="10.0.3.7@2211#1")
    seed.make_event(
        group,
        "queues_moved",
        at=now - timedelta(minutes=3),
        moves=[{"topic": "orders", "broker": "broker-a", "queue_id": 0, "from": "", "to": "10.0.3.7@2211#1"}],
    )
    return group
