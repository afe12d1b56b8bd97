from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from django.utils import timezone

from mqadmin.observing import leases

pytestmark = pytest.mark.django_db

NOW = timezone.now()
EXPIRED = NOW + timedelta(seconds=leases.LEASE_S + 1)


def test_lease_is_granted_once_until_it_expires() -> None:
    first = leases.grant(NOW)
    assert first is not None
    assert leases.grant(NOW) is None
    second = leases.grant(EXPIRED)
    assert second is not None
    assert not leases.renew(first, "w", EXPIRED), "the first holder hears that it lost"
    assert leases.renew(second, "w", EXPIRED)


def test_renewed_lease_does_not_expire() -> None:
    holder = leases.grant(NOW)
    assert holder is not None
    assert leases.renew(holder, "w", NOW + timedelta(seconds=15))
    assert leases.grant(EXPIRED) is None


def test_released_lease_may_be_taken_at_once() -> None:
    holder = leases.grant(NOW)
    assert holder is not None
    leases.release(holder, NOW)
    assert leases.grant(NOW) is not None


def test_release_by_one_who_lost_it_changes_nothing() -> None:
    leases.grant(NOW)
    leases.release(uuid.uuid4(), NOW)
    assert leases.grant(NOW) is None


def test_renewing_is_the_word_that_rows_are_true_up_to_then() -> None:
    holder = leases.grant(NOW)
    assert leases.renewed_at() is None
    leases.renew(holder or uuid.uuid4(), "w", NOW)
    assert leases.renewed_at() == NOW
    leases.grant(EXPIRED)
    assert leases.renewed_at() == NOW, "a new holder has not looked yet"
