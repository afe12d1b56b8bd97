"""A cluster with dead letters of one failure."""

from __future__ import annotations

import pytest
from django.utils import timezone

from mqadmin.clusters.models import Cluster
from mqadmin.deadletters.models import DeadLetter
from remoting.wire.properties import Property
from tests.support import console_rows as seed
from tests.support.dead_letter_brokers import dead_message

BODY = b'{"id":1,"currency":"EU"}'


@pytest.fixture
def prod(db: None) -> Cluster:
    now = timezone.now()
    prod = seed.make_cluster("prod", now=now)
    seed.make_broker(prod, now=now)
    return prod


@pytest.fixture
def dead(prod: Cluster) -> DeadLetter:
    """Tag "paid", keys "order-0 k", colour "red"."""
    message = dead_message(0, body=BODY, properties={"colour": "red", Property.FAILURE_CLASS: "KeyError"})
    seed.make_dead_letters(prod, "billing", [message], now=timezone.now())
    return DeadLetter.objects.get()
