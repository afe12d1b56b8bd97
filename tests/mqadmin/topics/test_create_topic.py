from __future__ import annotations

from typing import Any

import pytest

from mqadmin.action_runs import runner
from mqadmin.action_runs.runs import Refusal, Result
from mqadmin.actions.declaration import Preview, Undo
from mqadmin.audit.models import AuditEntry
from remoting.wire.bodies.topics import TopicConfig
from tests.support.callers import caller

pytestmark = pytest.mark.usefixtures("cluster")

EIGHT = {"read_queues": 8, "write_queues": 8, "perm": 6}


def create(person: Any, **values: Any) -> Result:
    result = runner.run(caller(person), "create_topic", "prod", {"topic": "orders", **values})
    assert isinstance(result, Result)
    return result


def preview(person: Any, **values: Any) -> Preview[Any]:
    return runner.preview(caller(person), "create_topic", "prod", {"topic": "orders", **values})


def test_each_broker_gets_the_topic_and_the_audit_says_so(brokers, ann) -> None:
    result = create(ann, read_queues=4, write_queues="2")
    assert [(one.item, one.state) for one in result.items] == [("broker-a", "done"), ("broker-b", "done")]
    for name in ("broker-a", "broker-b"):
        made = brokers[name].topics["orders"]
        assert (made.read_queue_nums, made.write_queue_nums, made.perm) == (4, 2, 6)
    entry = AuditEntry.objects.get()
    assert (entry.outcome, entry.subject, entry.before) == ("done", "orders", {"broker-a": {}, "broker-b": {}})
    assert entry.after["broker-b"] == {"read_queues": 4, "write_queues": 2, "perm": 6}
    assert result.undo == Undo("delete_topic", {"topic": "orders"})


def test_the_preview_shows_who_has_it_already_and_otherwise(brokers, ann) -> None:
    brokers["broker-a"].topics["orders"] = TopicConfig(topic_name="orders", read_queue_nums=16, write_queue_nums=16)
    shown = preview(ann)
    assert [(one.item, one.before) for one in shown.changes] == [
        ("broker-a", {"read_queues": 16, "write_queues": 16, "perm": 6}),
        ("broker-b", {}),
    ]
    assert "there already, with other settings, on broker-a:" in shown.warnings[0]
    assert "fewer queues" in shown.warnings[1]
    assert "orders" not in brokers["broker-b"].topics


def test_what_a_topic_has_besides_its_queues_stays(brokers, ann) -> None:
    brokers["broker-a"].topics["orders"] = TopicConfig(topic_name="orders", order=True)
    create(ann, read_queues=9, brokers=["broker-a"])
    assert brokers["broker-a"].topics["orders"].order
    assert "orders" not in brokers["broker-b"].topics


def test_one_that_is_so_already_is_unchanged(brokers, ann) -> None:
    for name in ("broker-a", "broker-b"):
        brokers[name].topics["orders"] = TopicConfig(topic_name="orders")
    assert not preview(ann).has_changes
    result = create(ann)
    assert (result.outcome, {one.state for one in result.items}, result.undo) == ("done", {"unchanged"}, None)


def test_other_settings_are_taken_back_by_those_before(brokers, ann) -> None:
    for name in ("broker-a", "broker-b"):
        brokers[name].topics["orders"] = TopicConfig(topic_name="orders")
    result = create(ann, read_queues=16, write_queues=16)
    assert result.undo == Undo("create_topic", {"topic": "orders", **EIGHT})
    assert runner.run(caller(ann), "create_topic", "prod", result.undo.arguments).outcome == "done"
    assert brokers["broker-b"].topics["orders"].read_queue_nums == 8


def test_a_broker_that_refuses_or_is_gone_is_an_outcome_of_its_own(brokers, ann) -> None:
    brokers["broker-b"].refusal = "no more topics here"
    result = create(ann)
    assert result.outcome == "partial"
    assert [(one.state, one.after) for one in result.items] == [("done", EIGHT), ("failed", {})]
    assert "no more topics here" in result.items[1].words


def test_a_broker_that_hangs_up_may_have_done_it(brokers, ann) -> None:
    brokers["broker-b"].hangs_up = True
    result = create(ann)
    assert [(one.state, one.after) for one in result.items] == [("done", EIGHT), ("unknown", None)]


def test_a_broker_that_does_not_answer_is_in_the_preview_and_fails_alone(brokers, ann) -> None:
    brokers.vanish("broker-b")
    shown = preview(ann)
    assert shown.changes[1].before is None
    assert "broker-b" not in brokers["broker-a"].topics
    assert shown.changes[1].note
    assert [one.state for one in create(ann).items] == ["done", "failed"]


def test_no_broker_that_answers_is_a_failure_without_items(brokers, ann) -> None:
    brokers.vanish("broker-a")
    brokers.vanish("broker-b")
    result = create(ann)
    assert (result.outcome, result.items) == ("failed", ())
    assert "127.0.0.1" in result.reason


@pytest.mark.parametrize(
    ("name", "refusal"),
    [
        ("TBW102", Refusal.RULE),
        ("RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC", Refusal.RULE),
        ("SCHEDULE_TOPIC_XXXX", Refusal.RULE),
        ("rmq_sys_mine", Refusal.RULE),
        ("broker-a", Refusal.RULE),
        ("DefaultCluster_REPLY_TOPIC", Refusal.RULE),
        ("%RETRY%billing", Refusal.RULE),
        ("%DLQ%billing", Refusal.RULE),
        ("not a name", Refusal.ARGUMENTS),
        ("<b>", Refusal.ARGUMENTS),
        ("x" * 128, Refusal.ARGUMENTS),
        (" ", Refusal.ARGUMENTS),
    ],
)
def test_names_that_must_not_be_are_refused(brokers, ann, name: str, refusal: Refusal) -> None:
    assert create(ann, topic=name).refusal == refusal
    assert not brokers["broker-a"].topics


@pytest.mark.parametrize(
    ("values", "wrong"),
    [
        ({"read_queues": 0}, "read_queues"),
        ({"write_queues": 10_001}, "write_queues"),
        ({"perm": 7}, "perm"),
        ({"brokers": ["broker-z"]}, "brokers"),
    ],
)
def test_numbers_and_brokers_that_cannot_be_are_refused(ann, values: dict[str, Any], wrong: str) -> None:
    assert set(create(ann, **values).errors) == {wrong}


def test_one_that_somebody_made_in_between_makes_the_preview_stale(brokers, ann) -> None:
    seen = preview(ann).fingerprint
    brokers["broker-b"].topics["orders"] = TopicConfig(topic_name="orders", read_queue_nums=1)
    result = runner.run(caller(ann), "create_topic", "prod", {"topic": "orders"}, fingerprint=seen)
    assert isinstance(result, Result)
    assert result.refusal == Refusal.STALE
    assert brokers["broker-b"].topics["orders"].read_queue_nums == 1
