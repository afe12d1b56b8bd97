"""A broker of one test, and the cluster as which the console knows it: for replays to members of our own consumer.

Import both fixtures.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.utils import timezone

from mqadmin.clusters.models import Cluster
from tests.support import console_rows as seed
from tests.support.our_broker import OurBroker


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[OurBroker]:
    with OurBroker(tmp_path / "store", "async", patient=True) as broker:
        yield broker


@pytest.fixture
def there(broker: OurBroker) -> Cluster:
    now = timezone.now()
    there = seed.make_cluster("there", now=now, namesrv=broker.namesrv)
    seed.make_broker(there, "broker-a", now=now, address=broker.broker)
    return there
