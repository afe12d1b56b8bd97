"""A replay to a group of our own consumer that consumes in order: what its broker makes of it, what a dry run says."""

# ruff: noqa: F811 - fixtures are imported and asked for by the same name

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import AbstractUser
from django.utils import timezone

from mqadmin.action_runs import runner
from mqadmin.actions.declaration import ActionRefused, ActionUnavailable, Preview
from mqadmin.clusters.models import Cluster, Member
from mqadmin.observing import polling_cycle
from mqadmin.replays.states import Target
from tests.journeys.replay_stage import broker, there  # noqa: F401 - fixtures
from tests.mqadmin.replays.test_driving import finish, make_dead, make_job, states
from tests.support.callers import caller
from tests.support.failing_group import FailingGroup
from tests.support.our_broker import OurBroker
from tests.support.reading import message_count
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.django_db(transaction=True)]

DLQ = "%DLQ%billing"
MESSAGES = 3


def look(person: AbstractUser, target: str = "group") -> Preview[Any]:
    """As soon as members and brokers answer in the time that a preview has."""

    def seen() -> Preview[Any] | None:
        try:
            return runner.preview(caller(person), "start_replay", "there", {"group": "billing", "target": target})
        except ActionUnavailable:
            return None

    return wait_until(seen, what="a preview")


def has_member(there: Cluster) -> bool:
    polling_cycle.poll_once(there, timezone.now())
    return Member.objects.filter(group__cluster=there, group__name="billing", left_at=None).exists()


def test_what_goes_to_the_retry_topic_comes_back_and_the_dry_run_knows_it(
    broker: OurBroker, there: Cluster, admin_user: AbstractUser
) -> None:
    with FailingGroup(broker, "orders", "billing", is_orderly=True) as group:
        group.heal()
        make_dead(there, MESSAGES, "orders")
        wait_until(lambda: has_member(there), what="the member")
        with pytest.raises(ActionRefused, match="consume in order"):
            look(admin_user)
        assert look(admin_user, "origin").plan.is_ordered is True
        # Where it is sent all the same, none is lost: each is a dead letter again at once, and no member saw it.
        job = finish(make_job(there, target=Target.GROUP))
        assert states(job) == {"sent": MESSAGES}
        wait_until(lambda: message_count(broker.broker, DLQ, 0) == MESSAGES, what="what comes back")
        assert group.consumed == []
        group.leave()
        wait_until(lambda: not has_member(there), what="the end of the member")
        preview = look(admin_user)
        assert preview.plan.is_ordered is None
        assert "some left within the last 90 s" in " ".join(preview.warnings)
