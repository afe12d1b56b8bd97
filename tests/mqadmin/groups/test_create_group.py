from __future__ import annotations

from typing import Any

import pytest

from mqadmin.action_runs import runner
from mqadmin.action_runs.runs import Refusal, Result
from mqadmin.actions.declaration import Undo
from mqadmin.audit.models import AuditEntry
from remoting.wire.bodies.groups import SubscriptionGroupConfig
from tests.support.callers import caller

pytestmark = pytest.mark.usefixtures("cluster")

DEFAULTS = {
    "consumption": True,
    "broadcasting": True,
    "orderly": False,
    "retry_times_max": 16,
    "retry_queues": 1,
    "consume_timeout_minutes": 15,
    "notifies_members": True,
}


def create(person: Any, **values: Any) -> Result:
    result = runner.run(caller(person), "create_group", "prod", {"group": "billing", **values})
    assert isinstance(result, Result)
    return result


def test_each_broker_gets_the_group_and_the_audit_says_so(brokers, ann) -> None:
    result = create(ann, retry_times_max=3, broadcasting=False)
    assert [(one.item, one.state) for one in result.items] == [("broker-a", "done"), ("broker-b", "done")]
    for name in ("broker-a", "broker-b"):
        made = brokers[name].groups["billing"]
        assert (made.retry_max_times, made.consume_broadcast_enable, made.consume_enable) == (3, False, True)
    entry = AuditEntry.objects.get()
    assert (entry.outcome, entry.subject, entry.before) == ("done", "billing", {"broker-a": {}, "broker-b": {}})
    assert entry.after["broker-a"] == DEFAULTS | {"retry_times_max": 3, "broadcasting": False}
    assert result.undo == Undo("delete_group", {"group": "billing"})


def test_what_is_not_given_stays_as_it_is(brokers, ann) -> None:
    brokers["broker-a"].groups["billing"] = SubscriptionGroupConfig(
        group_name="billing", retry_max_times=4, consume_enable=False, group_sys_flag=2
    )
    create(ann, retry_queues="2", consumption="", brokers=["broker-a"])
    made = brokers["broker-a"].groups["billing"]
    assert (made.retry_queue_nums, made.retry_max_times, made.consume_enable, made.group_sys_flag) == (2, 4, False, 2)
    assert "billing" not in brokers["broker-b"].groups


def test_settings_are_taken_back_by_those_before(brokers, ann) -> None:
    for name in ("broker-a", "broker-b"):
        brokers[name].groups["billing"] = SubscriptionGroupConfig(group_name="billing")
    result = create(ann, consumption=False, retry_times_max=0)
    assert result.undo == Undo("create_group", {"group": "billing", **DEFAULTS})
    assert runner.run(caller(ann), "create_group", "prod", result.undo.arguments).outcome == "done"
    assert brokers["broker-b"].groups["billing"].consume_enable
    assert brokers["broker-b"].groups["billing"].retry_max_times == 16


def test_one_that_is_so_already_is_unchanged(brokers, ann) -> None:
    for name in ("broker-a", "broker-b"):
        brokers[name].groups["billing"] = SubscriptionGroupConfig(group_name="billing")
    result = create(ann)
    assert (result.outcome, {one.state for one in result.items}, result.undo) == ("done", {"unchanged"}, None)


def test_nothing_is_sent_to_a_broker_that_did_not_say_what_it_has(brokers, ann) -> None:
    brokers.vanish("broker-b")
    seen = runner.preview(caller(ann), "create_group", "prod", {"group": "billing"})
    assert "broker-b did not say what it has" in " ".join(seen.warnings)
    result = create(ann)
    assert (result.outcome, {one.item: one.state for one in result.items}) == (
        "partial",
        {"broker-a": "done", "broker-b": "skipped"},
    )


def test_a_broker_that_refuses_or_hangs_up_is_an_outcome_of_its_own(brokers, ann) -> None:
    brokers["broker-a"].refusal = "no more groups here"
    brokers["broker-b"].hangs_up = True
    result = create(ann)
    assert [(one.state, one.after) for one in result.items] == [("failed", {}), ("unknown", None)]
    assert "no more groups here" in result.items[0].words


@pytest.mark.parametrize("group", ["TOOLS_CONSUMER", "CID_RMQ_SYS_TRANS"])
def test_rocketmqs_own_groups_are_refused(brokers, ann, group: str) -> None:
    assert create(ann, group=group).refusal == Refusal.RULE
    assert not brokers["broker-a"].groups


@pytest.mark.parametrize(
    "values",
    [
        {"group": "a b"},
        {"group": "<b>"},
        {"group": "g\u202e"},
        {"group": "x" * 256},
        {"retry_queues": 0},
        {"retry_times_max": -1},
        {"retry_times_max": "many"},
        {"consumption": "perhaps"},
        {"brokers": ["elsewhere"]},
        {"colour": "red"},
    ],
    ids=str,
)
def test_values_that_cannot_be_are_refused(brokers, ann, values: dict[str, Any]) -> None:
    result = create(ann, **values)
    assert result.refusal == Refusal.ARGUMENTS
    assert not brokers["broker-a"].groups
