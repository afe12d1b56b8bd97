"""Two brokers, the console's rows of them, and somebody who may do everything."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import AbstractUser
from django.utils import timezone

from mqadmin.clusters.models import Cluster
from tests.support import console_rows
from tests.support.group_brokers import GroupBrokers


@pytest.fixture
def brokers() -> Iterator[GroupBrokers]:
    with GroupBrokers("broker-a", "broker-b") as brokers:
        yield brokers


@pytest.fixture
def cluster(db: None, brokers: GroupBrokers) -> Cluster:
    now = timezone.now()
    cluster = console_rows.make_cluster("prod", now=now, namesrv=brokers.namesrv)
    for name in brokers.brokers:
        console_rows.make_broker(cluster, name, now=now)
    return cluster


@pytest.fixture
def ann(db: None, django_user_model: type[AbstractUser]) -> AbstractUser:
    return django_user_model.objects.create_superuser("ann")
