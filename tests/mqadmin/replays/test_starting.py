"""Starting a replay and changing it: the dry run, one job of a kind, and what came back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import AbstractUser
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from mqadmin.action_runs import runner
from mqadmin.action_runs.runs import Refusal, Result
from mqadmin.actions.arguments import InvalidArguments
from mqadmin.actions.declaration import ActionRefused, Preview
from mqadmin.clusters.models import Cluster, Group, Member, Subscription
from mqadmin.deadletters import selection
from mqadmin.deadletters.models import DeadLetter, Failure, MendedCopy
from mqadmin.deadletters.signals import DeadLettersIndexed
from mqadmin.observing.gateway import DelayReading, QueueReading
from mqadmin.people.masking import read_rules
from mqadmin.people.roles import Role
from mqadmin.replay_files.models import FileMessage, ReplayFile
from mqadmin.replays import choosing, start_replay, tasks
from mqadmin.replays.models import ReplayEntry, ReplayJob
from mqadmin.replays.receivers import note_dead_again, note_failed_attempts
from mqadmin.replays.states import EntryState, JobState
from mqadmin.retries.indexing import write
from mqadmin.retries.models import DelayQueue, FailedAttempt
from mqadmin.retries.signals import ReplayedAttempt, ReplayedFailed
from remoting.connection import Connection
from remoting.wire.bodies.running_info import PROP_CONSUMEORDERLY, ConsumerRunningInfo, write_running_info
from remoting.wire.bodies.topics import TopicConfig
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.names import SCHEDULE_TOPIC
from remoting.wire.properties import Property
from tests.support import console_rows as seed
from tests.support.callers import caller
from tests.support.dead_letter_brokers import dead_message
from tests.support.delay_queues import FAILED_MS, retried
from tests.support.group_brokers import GroupBroker, GroupBrokers
from tests.support.people import make_person
from tests.support.together import together

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def woken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Each replay that a worker is told of; there is no Redis here."""
    calls: list[int] = []
    monkeypatch.setattr(tasks, "wake", calls.append)
    return calls


@pytest.fixture
def broker() -> Iterator[GroupBroker]:
    with GroupBrokers("broker-a") as brokers:
        broker = brokers["broker-a"]
        broker.members = ["member@1"]
        broker.server.answers[RequestCode.GET_CONSUMER_RUNNING_INFO] = running_info(is_ordered=False)
        for name in ("orders", "%RETRY%billing"):
            broker.topics[name] = TopicConfig(topic_name=name)
        now = timezone.now()
        cluster = seed.make_cluster("there", now=now, namesrv=brokers.namesrv)
        seed.make_broker(cluster, "broker-a", now=now, address=broker.server.address)
        seed.make_dead_letters(cluster, "billing", [dead_message(offset) for offset in range(3)], now=now)
        yield broker


def running_info(*, is_ordered: bool) -> Callable[[Connection, Command], Command]:
    """Returns what a member answers."""

    def answer(_: Connection, request: Command) -> Command:
        told = ConsumerRunningInfo(properties={PROP_CONSUMEORDERLY: "true" if is_ordered else "false"})
        return response(request, ResponseCode.SUCCESS, body=write_running_info(told))

    return answer


def values(**more: Any) -> dict[str, Any]:
    return {"group": "billing", **more}


def look(person: AbstractUser, **more: Any) -> Preview[Any]:
    return runner.preview(caller(person), "start_replay", "there", values(**more))


def run(person: AbstractUser, action: str = "start_replay", **more: Any) -> Result:
    given = values(**more) if action == "start_replay" else more
    result = runner.run(caller(person), action, "there", given)
    assert isinstance(result, Result)
    return result


def test_the_dry_run_counts_samples_and_names_the_target(broker: GroupBroker, admin_user: AbstractUser) -> None:
    seen = look(admin_user)
    assert seen.changes[0].after["messages_selected"] == 3
    assert seen.changes[0].after["topics"] == ["%RETRY%billing"]
    assert seen.changes[0].after["sample"] == ["UNIQ2", "UNIQ1", "UNIQ0"]
    assert seen.warnings == ()


def test_a_dry_run_that_the_database_cannot_do_in_time_says_what_to_do(
    broker: GroupBroker, admin_user: AbstractUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selection, "FOUND_WITHIN_S", 0.0)
    with pytest.raises(ActionRefused, match="more narrowly: one failure"):
        look(admin_user, text="refused")
    result = run(admin_user, text="refused")
    assert (result.refusal, "more narrowly" in result.reason) == (Refusal.RULE, True)
    assert not ReplayJob.objects.exists()


def test_the_dry_run_says_what_to_know_before(broker: GroupBroker, admin_user: AbstractUser) -> None:
    broker.members = []
    del broker.topics["%RETRY%billing"]
    warnings = " ".join(look(admin_user).warnings)
    assert "No broker takes messages for %RETRY%billing" in warnings
    assert "No member of the group is online" in warnings
    assert "Every group of the topic" in " ".join(look(admin_user, target="origin").warnings)


def test_the_retry_topic_of_a_group_that_consumes_in_order_is_refused(
    broker: GroupBroker, admin_user: AbstractUser
) -> None:
    broker.server.answers[RequestCode.GET_CONSUMER_RUNNING_INFO] = running_info(is_ordered=True)
    with pytest.raises(ActionRefused, match="consume in order"):
        look(admin_user)
    assert look(admin_user, target="origin").changes


def test_whether_silent_members_consume_in_order_is_not_known(broker: GroupBroker, admin_user: AbstractUser) -> None:
    def silent(_: Connection, request: Command) -> Command:
        return response(request, ResponseCode.SYSTEM_ERROR, "the member does not answer")

    broker.server.answers[RequestCode.GET_CONSUMER_RUNNING_INFO] = silent
    warned = look(admin_user)
    assert warned.plan.is_ordered is None
    assert "consumes in order is not known" in " ".join(warned.warnings)
    assert "consumes in order" not in " ".join(look(admin_user, target="origin").warnings)


@pytest.mark.parametrize(("seconds_ago", "is_known"), [(30, False), (85, False), (120, True)])
def test_whether_members_that_left_hold_locks_is_not_known_for_90_s(
    broker: GroupBroker, admin_user: AbstractUser, seconds_ago: int, is_known: bool
) -> None:
    broker.members = []
    now = timezone.now()
    group = Group.objects.create(cluster=Cluster.objects.get(), name="billing", seen_at=now)
    Member.objects.create(
        group=group, client_id="m", first_seen_at=now, seen_at=now, left_at=now - timedelta(seconds=seconds_ago)
    )
    seen = look(admin_user)
    assert (seen.plan.is_ordered is not None) == is_known
    assert ("nobody is online and some left within the last 90 s" in " ".join(seen.warnings)) == (not is_known)


def test_tags_that_the_group_filters_and_an_origin_that_is_gone_are_named(
    broker: GroupBroker, admin_user: AbstractUser
) -> None:
    now = timezone.now()
    group = Group.objects.create(cluster=Cluster.objects.get(), name="billing", seen_at=now)
    subscription = Subscription.objects.create(
        group=group, topic_name="orders", expression="refunded", first_seen_at=now, seen_at=now
    )
    assert "filters these out, and it does not get them: paid (orders)" in warned(admin_user, target="origin")
    assert "gets them all the same" in warned(admin_user)
    del broker.topics["orders"]
    assert "Nobody can write to orders any more" in warned(admin_user)
    for expression, kind in (("refunded || paid", "TAG"), ("*", "TAG"), ("TAGS = 'refunded'", "SQL92")):
        Subscription.objects.filter(pk=subscription.pk).update(expression=expression, expression_type=kind)
        words = warned(admin_user, target="origin")
        assert "filters these out" not in words
        assert ("it does not get these: orders (3 of 3 that were looked at)" in words) == (kind == "SQL92")
    # What is mended is judged as it would be sent.
    MendedCopy.objects.create(
        dead_letter=DeadLetter.objects.latest("pk"), body=b"", properties={"TAGS": "refunded"}, mended_at=now
    )
    assert "it gets them all the same, since the retry topic is not filtered: orders (2 of 3" in warned(admin_user)
    assert "of 3 that" not in warned(admin_user, target="topic", target_topic="elsewhere")


def test_what_a_file_has_is_judged_by_tags_and_properties_too(broker: GroupBroker, admin_user: AbstractUser) -> None:
    now, cluster = timezone.now(), Cluster.objects.get()
    group = Group.objects.create(cluster=cluster, name="billing", seen_at=now)
    subscription = Subscription.objects.create(
        group=group, topic_name="orders", expression="refunded", first_seen_at=now, seen_at=now
    )
    file = ReplayFile.objects.create(cluster=cluster, name="x.jsonl", digest="d", created_at=now, read_at=now)
    line = {"file": file, "group_name": "billing", "origin_topic": "orders"}
    FileMessage.objects.create(**line, line=1, has_body=True, body=b"", properties={"TAGS": "late"})
    FileMessage.objects.create(**line, line=2, has_body=True, body=b"", properties={"TAGS": "refunded"})
    # Of this one the dead letter's own body is sent.
    FileMessage.objects.create(**line, line=3, dead_letter=DeadLetter.objects.latest("pk"))
    asked = {"file": file.pk, "target": "origin"}
    assert "does not get them: late (orders), paid (orders)" in warned(admin_user, **asked)
    Subscription.objects.filter(pk=subscription.pk).update(expression="TAGS = 'refunded'", expression_type="SQL92")
    assert "does not get these: orders (2 of 3 that were looked at)" in warned(admin_user, **asked)


def test_a_topic_that_a_silent_name_server_may_know_is_called_neither_closed_nor_gone(
    broker: GroupBroker, admin_user: AbstractUser
) -> None:
    Cluster.objects.update(namesrv=f"{Cluster.objects.get().namesrv};127.0.0.1:1")
    broker.topics.clear()
    words = warned(admin_user)
    assert "Not all could be asked" in words
    assert "Nobody can write to" not in words
    assert "No broker takes messages" not in words


def warned(person: AbstractUser, **more: Any) -> str:
    return " ".join(look(person, **more).warnings)


def test_two_who_start_the_same_replay_get_one_job(
    broker: GroupBroker, admin_user: AbstractUser, woken: list[int]
) -> None:
    first, second = run(admin_user), run(admin_user, rate=7)
    (job,) = ReplayJob.objects.all()
    assert (first.outcome, second.outcome) == ("done", "done")
    assert (first.items[0].state, second.items[0].state) == ("done", "unchanged")
    assert {one.items[0].after["replay"] for one in (first, second) if one.items[0].after} == {job.pk}
    assert woken == [job.pk]
    assert f"Replay {job.pk} sends the same already" in " ".join(look(admin_user).warnings)
    # Another selection, or the same when the first has ended, is another one.
    assert run(admin_user, target="origin").items[0].state == "done"
    ReplayJob.objects.filter(pk=job.pk).update(state=JobState.DONE)
    assert run(admin_user).items[0].state == "done"
    assert ReplayJob.objects.count() == 3


def test_two_who_start_it_at_the_same_moment_get_one_job(
    broker: GroupBroker, admin_user: AbstractUser, woken: list[int]
) -> None:
    people = [admin_user, make_person("ann", Role.OPERATOR), make_person("bob", Role.OPERATOR)]
    results = together(*[lambda who=who: run(who) for who in people])
    (job,) = ReplayJob.objects.all()
    assert woken == [job.pk]
    # Who comes while another starts it is told so; who comes afterwards gets the job that runs.
    assert [one.items[0].state for one in results if one.outcome == "done"].count("done") == 1
    assert {one.refusal for one in results if one.outcome == "refused"} <= {Refusal.BUSY}


def test_a_second_one_that_was_not_seen_when_looking_meets_the_first_in_the_database(
    broker: GroupBroker, admin_user: AbstractUser, woken: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(admin_user)
    look_for, looks = start_replay._running, iter([None, None])
    monkeypatch.setattr(start_replay, "_running", lambda *which: next(looks, look_for(*which)))
    second = run(admin_user)
    (job,) = ReplayJob.objects.all()
    assert (second.outcome, second.items[0].state) == ("done", "unchanged")
    assert second.items[0].after is not None
    assert (second.items[0].after["replay"], woken) == (job.pk, [job.pk])


def test_picks_and_filters_say_which_dead_letters(broker: GroupBroker, admin_user: AbstractUser) -> None:
    first = DeadLetter.objects.order_by("pk")[0]
    assert look(admin_user, ids=f"{first.pk}, {first.pk}").changes[0].after["messages_selected"] == 1
    failure = Failure.objects.get()
    assert look(admin_user, failure=failure.pk).changes[0].after["messages_selected"] == 3
    with pytest.raises(ActionRefused, match="No dead letter"):
        look(admin_user, since="2100-01-01 00:00")


def test_what_a_search_of_bodies_finds_is_replayed_and_of_it_what_the_role_may_see(
    broker: GroupBroker, admin_user: AbstractUser, settings: Any
) -> None:
    assert look(admin_user, body='"id": 1').changes[0].after["messages_selected"] == 1
    with pytest.raises(InvalidArguments, match="at least 3 characters"):
        look(admin_user, body="id")
    run(admin_user, body='"id": 1')
    assert ReplayJob.objects.get().selection == {"body": '"id": 1'}
    settings.MQADMIN_MASKED = read_rules("operator:orders")
    with pytest.raises(ActionRefused, match="No dead letter"):
        look(make_person("ann", Role.OPERATOR), body='"id": 1')


def test_what_is_found_by_attempts_property_and_first_sending_is_replayed(
    broker: GroupBroker, admin_user: AbstractUser
) -> None:
    said = {"attempts": 16, "born_since": "2000-01-01 00:00"}
    assert look(admin_user, **said).changes[0].after["messages_selected"] == 3
    run(admin_user, **said)
    (job,) = ReplayJob.objects.all()
    assert job.selection == {"attempts": 16, "born_since": "2000-01-01T00:00:00+00:00"}
    for which in ({"attempts": 0}, {"user_property": "tenant=acme"}, {"born_until": "2000-01-01 00:00"}):
        with pytest.raises(ActionRefused, match="No dead letter"):
            look(admin_user, **which)


@pytest.mark.parametrize("which", [{}, {"since": "2000-01-01 00:00"}])
def test_many_tags_of_one_topic_hide_no_other_topic(
    broker: GroupBroker, admin_user: AbstractUser, monkeypatch: pytest.MonkeyPatch, which: dict[str, str]
) -> None:
    monkeypatch.setattr(choosing, "TAGS_MAX", 2)
    many = [
        dead_message(
            10 + number, properties={Property.TAGS: f"t{number}", Property.RETRY_TOPIC: "a" if number < 5 else "b"}
        )
        for number in range(6)
    ]
    seed.make_dead_letters(Cluster.objects.get(), "billing", many, now=timezone.now())
    chosen = look(admin_user, **which).plan.chosen
    assert chosen.origins == ("a", "b", "orders")
    assert [one.topic for one in chosen.tags] == ["a", "a"]


def test_what_is_archived_is_replayed_where_it_is_asked_for(broker: GroupBroker, admin_user: AbstractUser) -> None:
    archived = DeadLetter.objects.order_by("pk")[0]
    DeadLetter.objects.filter(pk=archived.pk).update(archived_at=timezone.now())
    assert look(admin_user).changes[0].after["messages_selected"] == 2
    assert look(admin_user, archived="yes").changes[0].after["sample"] == ["UNIQ0"]
    assert look(admin_user, archived="yes", ids=str(archived.pk)).changes[0].after["messages_selected"] == 1


def test_bodies_that_are_hidden_are_not_sent_to_where_they_are_seen(
    broker: GroupBroker, django_user_model: Any, settings: Any
) -> None:
    settings.MQADMIN_MASKED = read_rules("operator:orders")
    broker.topics["mine"] = TopicConfig(topic_name="mine")
    operator = make_person("ann", Role.OPERATOR)
    with pytest.raises(ActionRefused, match="hidden from your role"):
        look(operator, target="topic", target_topic="mine")
    assert look(operator, target="origin").changes
    # A failure that stands for several topics names none.
    Failure.objects.update(origin_topic="")
    with pytest.raises(ActionRefused, match="hidden from your role"):
        look(operator, target="topic", target_topic="mine")


def test_a_viewer_may_not_start_one(broker: GroupBroker, django_user_model: Any) -> None:
    viewer = django_user_model.objects.create_user("eve")
    assert run(viewer).outcome == "refused"
    assert not ReplayJob.objects.exists()


def test_a_replay_is_paused_resumed_and_cancelled(
    broker: GroupBroker, admin_user: AbstractUser, woken: list[int]
) -> None:
    run(admin_user)
    job = ReplayJob.objects.get()
    states = []
    for action in ("pause_replay", "resume_replay", "cancel_replay"):
        assert run(admin_user, action, replay=str(job.pk)).outcome == "done"
        job.refresh_from_db()
        states.append(job.state)
    assert states == [JobState.PAUSED, JobState.RUNNING, JobState.CANCELLED]
    assert job.ended_at is not None
    assert woken == [job.pk] * 4
    assert run(admin_user, "resume_replay", replay=str(job.pk)).outcome == "refused"
    assert run(admin_user, "set_replay_rate", replay=str(job.pk), rate=5).outcome == "refused"


def test_the_rate_is_changed_and_changed_back(broker: GroupBroker, admin_user: AbstractUser) -> None:
    run(admin_user)
    job = ReplayJob.objects.get()
    result = run(admin_user, "set_replay_rate", replay=str(job.pk), rate=7)
    job.refresh_from_db()
    assert job.rate_per_s == 7
    assert result.undo is not None
    assert result.undo.arguments == {"replay": str(job.pk), "rate": 100}


def test_resuming_after_a_stop_judges_only_what_comes_afterwards(broker: GroupBroker, admin_user: AbstractUser) -> None:
    run(admin_user)
    job = ReplayJob.objects.get()
    ReplayJob.objects.filter(pk=job.pk).update(state=JobState.STOPPED, total_count=40, sent_count=40, failed_count=9)
    assert run(admin_user, "resume_replay", replay=str(job.pk)).outcome == "done"
    job.refresh_from_db()
    assert (job.state, job.judged_sent_count, job.judged_failed_count) == (JobState.RUNNING, 40, 9)


def test_a_message_that_comes_back_is_noted_once(broker: GroupBroker, admin_user: AbstractUser) -> None:
    run(admin_user)
    job = ReplayJob.objects.get()
    dead = DeadLetter.objects.all()[0]
    entry = ReplayEntry.objects.create(job=job, dead_letter=dead, message_id="m", state=EntryState.SENT)
    for offset, token in ((10, job.token), (11, job.token), (12, "another")):
        came = dead_message(offset, properties={Property.REPLAY_JOB: token, Property.REPLAY_ENTRY: str(entry.pk)})
        seed.make_dead_letters(job.cluster, "billing", [came], now=timezone.now())
    entry.refresh_from_db()
    job.refresh_from_db()
    assert entry.dead_again_id == DeadLetter.objects.get(queue_offset=10).pk
    assert (job.failed_count, job.dead_again_count) == (1, 1)
    assert entry.failed_attempt == 0


@pytest.mark.parametrize("are_dead", [False, True])
def test_jobs_are_locked_before_their_entries_and_entries_are_written_together(
    broker: GroupBroker, admin_user: AbstractUser, *, are_dead: bool
) -> None:
    """Whoever drives a replay locks them in this order, too: two orders are a deadlock on PostgreSQL."""
    run(admin_user)
    job = ReplayJob.objects.get()
    entries = [ReplayEntry.objects.create(job=job, message_id=str(one), state=EntryState.SENT) for one in range(9)]
    with CaptureQueriesContext(connection) as queries:
        if are_dead:
            dead = {(job.token, entry.pk): entry.pk for entry in entries}
            assert note_dead_again(DeadLettersIndexed(job.cluster, "billing", (), 9, dead)) == 9
        else:
            failed = {(job.token, entry.pk): ReplayedAttempt(1, None) for entry in entries}
            assert note_failed_attempts(ReplayedFailed(job.cluster, failed)) == 9
    told = [one["sql"] for one in queries if "mq_replays" in one["sql"]]
    assert ["replayentry" in one for one in told] == [False, True, True, False]
    assert ("FOR UPDATE" in told[0]) == (connection.vendor == "postgresql")
    job.refresh_from_db()
    assert (job.failed_count, job.dead_again_count) == (9, 9 if are_dead else 0)


def test_a_message_that_fails_at_several_attempts_counts_once(broker: GroupBroker, admin_user: AbstractUser) -> None:
    run(admin_user)
    job = ReplayJob.objects.get()
    first, other = (ReplayEntry.objects.create(job=job, message_id=one, state=EntryState.SENT) for one in "ab")
    queue = DelayQueue.objects.create(
        cluster=job.cluster, topic_name=SCHEDULE_TOPIC, broker_name="broker-a", queue_id=2
    )
    fails = [(first, 1, job.token), (first, 3, job.token), (first, 2, job.token), (other, 1, "another")]
    for offset, (entry, attempt, token) in enumerate(fails):
        properties = {Property.REPLAY_JOB: token, Property.REPLAY_ENTRY: str(entry.pk)}
        reading = QueueReading((retried(offset, attempt=attempt, properties=properties),), offset + 1, 9)
        write(job.cluster, queue, DelayReading(reading, {offset: FAILED_MS + 10_000 * attempt}))
    job.refresh_from_db()
    first.refresh_from_db()
    other.refresh_from_db()
    assert (job.failed_count, job.dead_again_count) == (1, 0)
    assert (first.failed_attempt, other.failed_attempt) == (3, None)
    assert first.retry_at == FailedAttempt.objects.get(attempt_count=3).due_at is not None
    came = {Property.REPLAY_JOB: job.token, Property.REPLAY_ENTRY: str(first.pk)}
    seed.make_dead_letters(job.cluster, "billing", [dead_message(9, properties=came)], now=timezone.now())
    job.refresh_from_db()
    first.refresh_from_db()
    assert (job.failed_count, job.dead_again_count, first.failed_attempt) == (1, 1, 3)


def test_very_many_are_not_all_counted_and_the_dry_run_says_so(
    broker: GroupBroker, admin_user: AbstractUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selection, "ROWS_COUNTED_MAX", 2)
    preview = look(admin_user)
    assert preview.changes[0].after["messages_selected"] == 2
    assert (preview.plan.chosen.has_more, preview.plan.chosen.ledger_count) == (True, None)
    words = " ".join(preview.warnings)
    assert "More than 2 are selected; all of them are sent" in words
    assert "these are about 3, with what is archived" in words
    # Of a time nobody has a count.
    since = look(admin_user, since="2020-01-01T00:00:00Z")
    assert (since.plan.chosen.has_more, since.plan.chosen.estimate) == (True, None)


def test_a_dry_run_that_counts_all_does_not_estimate(
    broker: GroupBroker, admin_user: AbstractUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selection, "ROWS_COUNTED_MAX", 3)
    preview = look(admin_user)
    assert preview.changes[0].after["messages_selected"] == 3
    assert (preview.plan.chosen.has_more, preview.plan.chosen.estimate) == (False, None)
