from __future__ import annotations

from typing import Any

import pytest

from mqadmin.action_runs import runner
from mqadmin.action_runs.runs import Refusal, Result
from mqadmin.actions.declaration import Undo
from remoting.wire.bodies.groups import SubscriptionGroupConfig
from tests.support.callers import caller
from tests.support.group_brokers import GroupBrokers

pytestmark = pytest.mark.usefixtures("cluster")


@pytest.fixture(autouse=True)
def billing(brokers: GroupBrokers) -> None:
    for name in ("broker-a", "broker-b"):
        brokers[name].groups["billing"] = SubscriptionGroupConfig(group_name="billing", retry_max_times=3)


def switch(person: Any, consumption: Any, group: str = "billing") -> Result:
    values = {"group": group, "consumption": consumption}
    result = runner.run(caller(person), "set_group_consumption", "prod", values)
    assert isinstance(result, Result)
    return result


def test_members_may_not_consume_and_may_again(brokers, ann) -> None:
    result = switch(ann, False)
    assert [(one.state, one.before, one.after) for one in result.items] == [
        ("done", {"consumption": True}, {"consumption": False})
    ] * 2
    made = brokers["broker-b"].groups["billing"]
    assert (made.consume_enable, made.retry_max_times) == (False, 3)
    assert result.undo == Undo("set_group_consumption", {"group": "billing", "consumption": True})
    assert switch(ann, "true").outcome == "done"
    assert brokers["broker-a"].groups["billing"].consume_enable


def test_the_preview_says_who_is_online(brokers, ann) -> None:
    brokers["broker-a"].members = brokers["broker-b"].members = ["10.0.0.1@7", "10.0.0.2@8"]
    values = {"group": "billing", "consumption": False}
    seen = runner.preview(caller(ann), "set_group_consumption", "prod", values)
    assert seen.warnings == (
        "2 members are online: their pulls are refused from now on, and the group's messages wait.",
    )


def test_brokers_that_have_it_otherwise_are_changed_alone(brokers, ann) -> None:
    brokers["broker-a"].groups["billing"] = SubscriptionGroupConfig(group_name="billing", consume_enable=False)
    result = switch(ann, False)
    assert {one.item: one.state for one in result.items} == {"broker-a": "unchanged", "broker-b": "done"}
    assert result.undo is None


def test_a_group_that_no_broker_has_is_refused(brokers, ann) -> None:
    result = switch(ann, False, group="nobody")
    assert result.refusal == Refusal.RULE
    assert "nobody" not in brokers["broker-a"].groups


def test_a_broker_that_is_away_is_named_and_keeps_what_it_has(brokers, ann) -> None:
    brokers.vanish("broker-b")
    seen = runner.preview(caller(ann), "set_group_consumption", "prod", {"group": "billing", "consumption": False})
    assert seen.warnings[0].startswith("broker-b did not answer and keeps the setting that it has: ")
    result = switch(ann, False)
    assert {one.item: one.state for one in result.items} == {"broker-a": "done", "broker-b": "skipped"}
    assert result.items[1].words.startswith("It did not answer and keeps what it has: do this again when it is back.")


@pytest.mark.parametrize("consumption", ["", None, "perhaps", 1])
def test_it_must_be_said_which(ann, consumption: Any) -> None:
    assert switch(ann, consumption).refusal == Refusal.ARGUMENTS
