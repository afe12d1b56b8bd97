"""A cluster whose broker has a dead-letter queue."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import pytest
from django.utils import timezone

from mqadmin.clusters.models import Cluster
from mqadmin.deadletters import tasks
from mqadmin.deadletters.models import DeadLetterQueue
from tests.support import console_rows as seed
from tests.support.dead_letter_brokers import DeadLetterQueues
from tests.support.topic_brokers import TopicBrokers

TOPIC = "%DLQ%billing"


@pytest.fixture
def brokers() -> Iterator[TopicBrokers]:
    with TopicBrokers("broker-a") as brokers:
        yield brokers


@pytest.fixture
def queues(brokers: TopicBrokers) -> DeadLetterQueues:
    return DeadLetterQueues(brokers["broker-a"])


@pytest.fixture
def now() -> datetime:
    return timezone.now()


@pytest.fixture
def prod(db: None, brokers: TopicBrokers, now: datetime) -> Cluster:
    prod = seed.make_cluster("prod", now=now, namesrv=brokers.namesrv)
    seed.make_broker(prod, "broker-a", now=now, address=brokers["broker-a"].server.address)
    return prod


@pytest.fixture
def queue(prod: Cluster) -> DeadLetterQueue:
    """Known to reach to 3, nothing of it indexed."""
    return DeadLetterQueue.objects.create(
        cluster=prod, topic_name=TOPIC, broker_name="broker-a", queue_id=0, end_offset=3
    )


@pytest.fixture(autouse=True)
def woken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Each time that the index is woken; there is no Redis here."""
    calls: list[bool] = []
    monkeypatch.setattr(tasks.index_dead_letters, "apply_async", lambda **_: calls.append(True))
    return calls
