"""Two brokers, and the console's rows of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mqadmin.clusters.models import Cluster
from tests.support import console_rows
from tests.support.group_brokers import GroupBrokers


@pytest.fixture
def brokers() -> Iterator[GroupBrokers]:
    with GroupBrokers("broker-a", "broker-b") as brokers:
        yield brokers


@pytest.fixture
def cluster(db: None, brokers: GroupBrokers) -> Cluster:
    return console_rows.make_cluster_of(brokers.namesrv, brokers.brokers)
