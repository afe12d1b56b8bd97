"""Who may drive: one at a time, each under an epoch of its own."""

from __future__ import annotations

import pytest

from broker.engine.schedule.lease import LEASE_MS_MAX, Lease


@pytest.fixture
def lease():
    return Lease(first_epoch=100)


def test_lease_is_granted_to_the_first_who_asks(lease):
    grant = lease.ask("a", 0, 2_000, now_ms=0)

    assert (grant.granted, grant.epoch, grant.holder, grant.is_new) == (True, 101, "a", True)


# what happened before, who asks with which epoch at which time, granted?, epoch, is it a new holder
CASES = {
    "the holder renews": ("a", 101, 1_999, True, 101, False),
    "the holder renews too late": ("a", 101, 2_000, True, 102, True),
    "the holder asks anew after losing its connection": ("a", 0, 500, True, 102, True),
    "another is refused while it is held": ("b", 0, 1_999, False, 101, False),
    "another with the right number is refused too": ("b", 101, 500, False, 101, False),
    "another takes over when it has run out": ("b", 0, 2_000, True, 102, True),
    "a former epoch is refused while it is held": ("a", 100, 500, False, 101, False),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_lease_asked_again(lease, case):
    driver, epoch, now_ms, granted, new_epoch, is_new = case
    lease.ask("a", 0, 2_000, now_ms=0)

    grant = lease.ask(driver, epoch, 2_000, now_ms)

    assert (grant.granted, grant.epoch, grant.is_new) == (granted, new_epoch, is_new)


def test_lease_allows_steps_only_under_the_epoch_in_force(lease):
    epoch = lease.ask("a", 0, 2_000, now_ms=0).epoch

    assert lease.allows(epoch, now_ms=1_999)
    assert not lease.allows(epoch, now_ms=2_000)
    assert not lease.allows(epoch - 1, now_ms=0)
    assert not lease.allows(0, now_ms=0)


def test_lease_stops_allowing_the_former_driver_when_another_took_over(lease):
    first = lease.ask("a", 0, 2_000, now_ms=0).epoch
    second = lease.ask("b", 0, 2_000, now_ms=2_500).epoch

    assert not lease.allows(first, now_ms=2_600)
    assert lease.allows(second, now_ms=2_600)


def test_lease_is_free_at_once_when_its_holder_is_gone(lease):
    epoch = lease.ask("a", 0, 2_000, now_ms=0).epoch

    assert lease.release(epoch)
    assert lease.ask("b", 0, 2_000, now_ms=1).granted


def test_lease_is_not_released_by_a_former_holder(lease):
    first = lease.ask("a", 0, 2_000, now_ms=0).epoch
    lease.ask("b", 0, 2_000, now_ms=2_000)

    assert not lease.release(first)
    assert lease.is_held(now_ms=2_001)


def test_lease_is_never_given_for_longer_than_its_limit(lease):
    lease.ask("a", 0, 10**9, now_ms=0)

    assert not lease.is_held(now_ms=LEASE_MS_MAX)
