"""A cluster of Apache's with a group of three members."""

from __future__ import annotations

from datetime import datetime

import pytest
from django.utils import timezone

from mqadmin.clusters.models import Cluster, ClusterKind, Group, Member
from tests.support import console_rows as seed


@pytest.fixture
def now() -> datetime:
    return timezone.now()


@pytest.fixture
def apache(db: None, now: datetime) -> Cluster:
    return seed.make_cluster("prod", now=now, kind=ClusterKind.APACHE)


@pytest.fixture
def billing(apache: Cluster, now: datetime) -> Group:
    group = seed.make_group(apache, "billing", now=now, member_count=3)
    seed.make_subscription(group, "orders", "*", now=now)
    return group


@pytest.fixture
def members(billing: Group, now: datetime) -> list[Member]:
    return [seed.make_member(billing, name, now=now) for name in ("10.0.0.1@1", "10.0.0.2@1", "10.0.0.3@1")]
