from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from django.utils import timezone

from mqadmin.clusters.models import Cluster
from mqadmin.observing import leases

pytestmark = pytest.mark.django_db

NOW = timezone.now()
EXPIRED = NOW + timedelta(seconds=leases.LEASE_S + 1)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster.objects.create(name="local", namesrv="127.0.0.1:9876")


def test_lease_is_granted_once_until_it_expires(cluster: Cluster) -> None:
    first = leases.grant(cluster, NOW)
    assert first is not None
    assert leases.grant(cluster, NOW) is None
    second = leases.grant(cluster, EXPIRED)
    assert second is not None
    assert not leases.renew(cluster.pk, first, "w", EXPIRED), "the first holder hears that it lost"
    assert leases.is_stop_asked(cluster.pk, first)
    assert not leases.is_stop_asked(cluster.pk, second)


def test_renewed_lease_does_not_expire(cluster: Cluster) -> None:
    holder = leases.grant(cluster, NOW)
    assert holder is not None
    assert leases.renew(cluster.pk, holder, "w", NOW + timedelta(seconds=15))
    assert leases.grant(cluster, EXPIRED) is None


def test_released_lease_may_be_taken_at_once(cluster: Cluster) -> None:
    holder = leases.grant(cluster, NOW)
    assert holder is not None
    leases.release(cluster.pk, holder, NOW)
    assert leases.grant(cluster, NOW) is not None


def test_release_by_one_who_lost_it_changes_nothing(cluster: Cluster) -> None:
    leases.grant(cluster, NOW)
    leases.release(cluster.pk, uuid.uuid4(), NOW)
    assert leases.grant(cluster, NOW) is None


def test_worker_that_shuts_down_stops_its_own_followers_alone(cluster: Cluster) -> None:
    other = Cluster.objects.create(name="other", namesrv="127.0.0.1:9877")
    holders = {}
    for row, worker in ((cluster, "jobs@a"), (other, "jobs@b")):
        holders[row.pk] = leases.grant(row, NOW)
        leases.renew(row.pk, holders[row.pk] or uuid.uuid4(), worker, NOW)
    assert leases.ask_worker_to_stop("jobs@a") == 1
    assert leases.is_stop_asked(cluster.pk, holders[cluster.pk] or uuid.uuid4())
    assert not leases.is_stop_asked(other.pk, holders[other.pk] or uuid.uuid4())
    leases.release(cluster.pk, holders[cluster.pk] or uuid.uuid4(), NOW)
    again = leases.grant(cluster, NOW)
    assert again is not None
    assert not leases.is_stop_asked(cluster.pk, again), "the word was for the one before"
