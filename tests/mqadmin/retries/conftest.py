"""A cluster whose broker keeps messages until their time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import pytest
from django.utils import timezone

from mqadmin.clusters.models import Cluster
from tests.support import console_rows as seed
from tests.support.delay_queues import DelayQueues
from tests.support.topic_brokers import TopicBrokers


@pytest.fixture
def brokers() -> Iterator[TopicBrokers]:
    with TopicBrokers("broker-a") as brokers:
        yield brokers


@pytest.fixture
def queues(brokers: TopicBrokers) -> DelayQueues:
    return DelayQueues(brokers["broker-a"])


@pytest.fixture
def now() -> datetime:
    return timezone.now()


@pytest.fixture
def prod(db: None, brokers: TopicBrokers, now: datetime) -> Cluster:
    prod = seed.make_cluster("prod", now=now, namesrv=brokers.namesrv)
    seed.make_broker(prod, "broker-a", now=now, address=brokers["broker-a"].server.address)
    return prod
