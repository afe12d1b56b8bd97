"""What happens to a console under test, step by step, in a process of its own: the browser's tests say which step.

Each line of standard input is a step, {"step": name, …arguments}; each is answered by one line of JSON. A step writes
rows as the synchroniser would, and publishes the change as it would. Run with the environment of the site under test.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import django
from django.conf import settings

# What is published while Redis stands still is lost by intent, and a story's step would never be seen.
settings.CACHES["default"]["OPTIONS"] = {"socket_timeout": 60}
django.setup()

from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, get_user_model  # noqa: E402
from django.contrib.sessions.backends.db import SessionStore  # noqa: E402
from django.contrib.sessions.models import Session  # noqa: E402
from django.db import OperationalError  # noqa: E402
from django.utils import timezone  # noqa: E402

from consumer.models import HostedGroup  # noqa: E402
from mqadmin.alerts.evaluating import evaluate  # noqa: E402
from mqadmin.alerts.models import (  # noqa: E402
    Alert,
    AlertChannel,
    AlertDelivery,
    AlertNotice,
    AlertRule,
    AlertSilence,
)
from mqadmin.beat import ENTRIES  # noqa: E402
from mqadmin.clusters.models import VERDICT_RANKS, Cluster, ClusterState, Group, QueueOffset, Topic, TopicQueue, Verdict  # noqa: E402
from mqadmin.deadletter_rules.applying import apply_rules  # noqa: E402
from mqadmin.deadletter_rules.models import DeadLetterRule, RaisedFailure  # noqa: E402
from mqadmin.deadletters import indexing as dead_letter_indexing  # noqa: E402
from mqadmin.deadletters.models import DeadLetter, Failure, MendedCopy  # noqa: E402
from mqadmin.events.kinds import EventKind, NewEvent  # noqa: E402
from mqadmin.events.models import Event  # noqa: E402
from mqadmin.events.recording import record  # noqa: E402
from mqadmin.live.events import Change, ChangeKind, publish  # noqa: E402
from mqadmin.objectives.selectors import objectives_of  # noqa: E402
from mqadmin.observing.polling_cycle import poll_once  # noqa: E402
from mqadmin.people.roles import Role  # noqa: E402
from mqadmin.producers.models import SeenProducer  # noqa: E402
from mqadmin.rebalances.models import RebalanceSource  # noqa: E402
from mqadmin.replays.driving import NOWHERE  # noqa: E402
from mqadmin.replays.models import ReplayEntry  # noqa: E402
from mqadmin.replays.tasks import drive_replays  # noqa: E402
from mqadmin.retries import indexing as retry_indexing  # noqa: E402
from mqadmin.tokens.models import ApiToken, digest_of  # noqa: E402
from remoting.wire.properties import Property  # noqa: E402
from remoting.wire.stored_message import StoredMessage  # noqa: E402
from tests.support import console_rows as seed  # noqa: E402
from tests.support.console_reports import reported  # noqa: E402
from tests.support.dead_letter_brokers import dead_message  # noqa: E402
from tests.support.people import make_person  # noqa: E402
from tests.support.waiting import wait_until  # noqa: E402


def admin(password: str) -> None:
    get_user_model().objects.create_superuser("admin", password=password)


def empty_cluster() -> None:
    """As the first start leaves it: a broker that answers, and nothing on it."""
    now = timezone.now()
    seed.make_broker(seed.make_cluster("local", now=now), now=now, scheduler_waiting_count=0)
    _publish(ChangeKind.CLUSTER)


def cluster_behind(namesrv: str, brokers: list[str], addresses: list[str] | None = None) -> None:
    """Another cluster, "prod", whose brokers answer: actions ask them, and pages where they know the `addresses`."""
    now = timezone.now()
    prod = seed.make_cluster("prod", now=now, namesrv=namesrv)
    for name, address in zip(brokers, addresses or ["127.0.0.1:10911"] * len(brokers), strict=True):
        seed.make_broker(prod, name, now=now, address=address)
    seed.make_topic(prod, "orders", now=now, queue_count=0 if addresses else 4)
    if addresses:
        seed.make_group(prod, "billing", now=now)
        seed.make_failed_attempts(prod, "billing", now=now)


def shop() -> None:
    """Two groups that read orders: billing with two members and four queues, and an index that keeps up."""
    now = timezone.now()
    cluster = Cluster.objects.filter(name="local").first() or seed.make_cluster("local", now=now)
    seed.make_topic(cluster, "orders", now=now)
    billing = seed.make_group(cluster, "billing", now=now, lag=0)
    for number in (1, 2):
        seed.make_member(billing, f"10.0.3.7@2211#{number}", now=now)
    for queue_id in range(4):
        seed.make_queue_offset(billing, "orders", queue_id, now=now, owner=f"10.0.3.7@2211#{1 + queue_id // 2}")
    for client_id in ("", "10.0.3.7@2211#1", "billing-worker-7f6c9d5b8-x2x9q@8812#1690000000000"):
        seed.make_subscription(billing, "orders", "*", now=now, client_id=client_id)
    seed.make_dead_letters(cluster, "billing", dead_orders(now), now=now)
    mended_and_ruled(cluster, now)
    reported(cluster, now)
    watched(cluster, now)
    index = seed.make_group(cluster, "orders-index", now=now, lag=3)
    seed.make_queue_offset(index, "orders", 0, now=now, lag=3, committed_offset=131_997)
    _publish(ChangeKind.GROUPS)


def watched(cluster: Cluster, now: datetime) -> None:
    """A rule with a channel, of which something fired and has resolved, and a silence."""
    channel = AlertChannel.objects.create(
        name="ops", kind="slack", place="hooks.slack.com", made_by="admin", made_at=now
    )
    rule = AlertRule.objects.create(
        name="stalled", about="verdict", verdicts=["stalled", "stopped"], for_s=60, made_by="admin", made_at=now
    )
    rule.channels.set([channel])
    told = now - timedelta(hours=3)
    over = Alert.objects.create(
        rule=rule,
        cluster=cluster,
        subject="group",
        name="billing",
        state="resolved",
        since=told - timedelta(minutes=1),
        fired_at=told,
        told_at=told,
        resolved_at=now - timedelta(hours=2),
        acknowledged_at=told + timedelta(minutes=4),
        acknowledged_by="admin",
        acknowledged_note="restarting",
        reading={"verdict": "stalled", "rule": "offset_stands", "numbers": {"members": 2, "lag": 4_811}},
    )
    for kind, error in (("fired", ""), ("resolved", "it answered 503")):
        notice = AlertNotice.objects.create(rule=rule, cluster=cluster, kind=kind, rule_name="stalled", made_at=told)
        notice.alerts.set([over])
        AlertDelivery.objects.create(
            notice=notice,
            channel=channel,
            channel_name="ops",
            state="failed" if error else "sent",
            attempt_count=8 if error else 1,
            error=error,
            due_at=told,
            made_at=told,
        )
    AlertSilence.objects.create(
        cluster=cluster,
        name="nights",
        names="mail-*",
        starts_at=now,
        weekdays=[5, 6],
        from_minute=1320,
        to_minute=360,
        zone="Asia/Shanghai",
        note="night",
        made_by="admin",
    )


def dead_orders(now: datetime) -> list[StoredMessage]:
    """Twelve that a gateway did not answer for, and one that no member told the reason of."""
    told = {
        Property.FAILURE_CLASS: "PaymentTimeout",
        Property.FAILURE_MEMBER: "10.0.3.7@2211#1",
        Property.FAILURE_LISTENER: "shop.listeners.bill",
    }
    now_ms = int(now.timestamp() * 1000)
    return [
        *(
            dead_message(
                number,
                properties=told | {Property.FAILURE_TEXT: f"gateway: {number + 20} s"},
                store_timestamp_ms=now_ms - (12 - number) * 1_500_000,
            )
            for number in range(12)
        ),
        dead_message(12, properties={Property.TAGS: "refunded"}, body=b"\xff\x00", store_timestamp_ms=now_ms),
    ]


def mended_and_ruled(cluster: Cluster, now: datetime) -> None:
    """Dead letter 2 is mended; a replay is paused; a rule runs that raises what the gateway fails on."""
    MendedCopy.objects.create(
        dead_letter_id=2,
        body=b'{"id": 1, "currency": "EUR", "token": "%s"}' % (b"x" * 200),
        properties={"KEYS": "order-1", "RETRY_TOPIC": "orders"},
        mended_by="admin",
        mended_at=now,
    )
    replay = seed.make_replay(
        cluster,
        now=now,
        group_name="billing",
        state="paused",
        selection={"failure": 2, "text": "PaymentTimeout"},
        total_count=2,
        waiting_count=1,
        refused_count=1,
    )
    for number, words in ((1, ""), (2, NOWHERE % {"topic": "orders"})):
        ReplayEntry.objects.create(
            job=replay,
            dead_letter_id=number,
            message_id=DeadLetter.objects.get(pk=number).message_id,
            state="refused" if words else "waiting",
            words=words,
        )
    DeadLetterRule.objects.create(
        cluster=cluster,
        name="nightly",
        group_name="billing",
        does="raise",
        class_pattern="Payment*",
        after_minutes=10,
        from_hour=22,
        to_hour=6,
        acts_for="admin",
        is_running=True,
        made_at=now,
        last_words="waits for its hours",
    )


def failure_raised() -> None:
    """By the rule: it is one thing that needs attention."""
    now = timezone.now()
    rule, failure = DeadLetterRule.objects.get(), Failure.objects.get(failure_class="PaymentTimeout")
    RaisedFailure.objects.create(rule=rule, failure=failure, raised_at=now, last_at=now, dead_count=12)


def clusters(count: int) -> None:
    """Further clusters, c0 and so on, that answer."""
    for number in range(count):
        seed.make_cluster(f"c{number}", now=timezone.now())


def cluster_falls_silent(name: str) -> None:
    Cluster.objects.filter(name=name).update(state=ClusterState.UNREACHABLE, last_error="connection refused")
    publish([Change(ChangeKind.CLUSTER, name)])


def hosted(group: str, wanted: int) -> None:
    """The group is hosted by this project, on the cluster that MQADMIN_NAMESRV names."""
    HostedGroup.objects.create(group=group, wanted_instances=wanted, declared_instances=wanted)


def lag_becomes(group: str, lag: int, verdict: str = "ok") -> None:
    """The group's lag, all of it on queue 0 of orders."""
    now = timezone.now()
    moment = now - timedelta(seconds=30) if lag else None
    Group.objects.filter(name=group).update(
        lag=lag,
        behind_since=moment,
        behind_method="store_time" if lag else "",
        verdict=verdict,
        verdict_rank=VERDICT_RANKS[Verdict(verdict)],
        offsets_seen_at=now,
        seen_at=now,
    )
    TopicQueue.objects.filter(topic__name="orders", queue_id=0).update(max_offset=132_000 + lag)
    QueueOffset.objects.filter(group__name=group, queue_id=0).update(behind_since=moment, seen_at=now)
    _publish(ChangeKind.GROUP, group)
    _publish(ChangeKind.GROUPS)


def groups(count: int) -> None:
    """As many groups more, each with two members."""
    now = timezone.now()
    cluster = Cluster.objects.get(name="local")
    for number in range(count):
        group = seed.make_group(cluster, f"shop-{number:02}", now=now, lag=0)
        for member in (1, 2):
            seed.make_member(group, f"10.0.5.{number}@77#{member}", now=now)
        for queue_id in range(4):
            owner = f"10.0.5.{number}@77#{1 + queue_id // 2}"
            seed.make_queue_offset(group, "orders", queue_id, now=now, owner=owner)
    _publish(ChangeKind.GROUPS)


def lags_become(lag: int) -> None:
    """The lag of all groups at once, as a sampling cycle finds it."""
    now = timezone.now()
    Group.objects.update(lag=lag, offsets_seen_at=now, seen_at=now)
    names = Group.objects.values_list("name", flat=True)
    publish([*(Change(ChangeKind.GROUP, "local", name) for name in names), Change(ChangeKind.GROUPS, "local")])


def log_ins_end() -> None:
    """Everybody is logged out, elsewhere."""
    Session.objects.all().delete()
    _publish(ChangeKind.CLUSTER)
    _publish(ChangeKind.GROUP, "billing")


def token(secret: str) -> None:
    """The administrator's, for everything."""
    person = get_user_model().objects.get(username="admin")
    ends = timezone.now() + timedelta(days=1)
    ApiToken.objects.create(person=person, name="story", digest=digest_of(secret), role="viewer", expires_at=ends)


def flows() -> None:
    """Further topics and groups, with retries and dead letters, so that a map of flows has something to show."""
    now = timezone.now()
    cluster = Cluster.objects.get(name="local")
    readers = {"payments": ("ledger", "fraud-check"), "mail": ("mail-out",), "audit-log-of-everything-that-happens": ()}
    for number, (topic, groups) in enumerate(readers.items()):
        seed.make_topic(cluster, topic, now=now)
        Topic.objects.filter(name=topic).update(in_per_s=12.5 * number)
        for name in groups:
            seed.make_queue_offset(seed.make_group(cluster, name, now=now, lag=number), topic, 0, now=now, lag=number)
    for name, kind, per_s, count in (("%RETRY%billing", "retry", 0.4, 12), ("%DLQ%billing", "dead_letter", 0.1, 13)):
        seed.make_topic(cluster, name, now=now, queue_count=0)
        Topic.objects.filter(name=name).update(kind=kind, in_per_s=per_s, message_count=count)
    for client in ("10.0.4.1@77", "10.0.4.2@78"):
        SeenProducer.objects.create(cluster=cluster, group="shop", client_id=client, first_seen_at=now, seen_at=now)


def sessions(count: int) -> list[str]:
    """As many log-ins of as many people who may read."""
    keys = []
    for number in range(count):
        person = make_person(f"viewer-{number}", Role.VIEWER)
        session = SessionStore()
        session[SESSION_KEY] = str(person.pk)
        session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
        session[HASH_SESSION_KEY] = person.get_session_auth_hash()
        session.create()
        keys.append(str(session.session_key))
    return keys


def verdicts_turn(count: int, filler: str = "") -> None:
    """As many events, numbered from where the last ones ended."""
    began, now = Event.objects.filter(kind=EventKind.VERDICT).count(), timezone.now()
    for first in range(0, count, 500):
        numbers = range(began + first, began + min(first + 500, count))
        data = [{"number": number, "filler": filler} for number in numbers]
        record([NewEvent(EventKind.VERDICT, "local", "billing", now, one) for one in data])


def member_joins(group: str, client_id: str) -> None:
    """The member gets queue 3 of orders from whoever had it."""
    now = timezone.now()
    found = Group.objects.get(name=group)
    seed.make_member(found, client_id, now=now, online_since=now)
    queue = QueueOffset.objects.get(group=found, queue_id=3)
    giver, queue.owner, queue.owner_since = queue.owner, client_id, now
    queue.save()
    found.member_count = found.members.filter(left_at=None).count()
    found.save()
    move = {"topic": "orders", "broker": "broker-a", "queue_id": 3, "from": giver, "to": client_id}
    seed.make_event(found, "joined", at=now, client_id=client_id, member_count=found.member_count)
    seed.make_event(found, "queues_moved", at=now + timedelta(milliseconds=20), moves=[move])
    _publish(ChangeKind.GROUP, group)
    _publish(ChangeKind.REBALANCE, group)
    _publish(ChangeKind.GROUPS)
    _publish(ChangeKind.REBALANCES)


def rebalanced(group: str) -> None:
    """Two days of rebalances, of each kind and source: pauses, gaps, a deployment, and a group that churns."""
    now = timezone.now()
    found = Group.objects.get(name=group)
    first, second, long = "10.0.3.7@2211#1", "10.0.3.7@2211#2", "billing-worker-7f6c9d5b8-x2x9q@8812#1690000000000"
    runtime, poll = RebalanceSource.RUNTIME, RebalanceSource.POLL

    def happens(minutes: float, kind: str, client_id: str = "", **values: Any) -> None:
        seed.make_event(found, kind, at=now - timedelta(minutes=minutes), client_id=client_id, **values)

    def moves(giver: str, taker: str, *queue_ids: int, broker: str = "broker-a") -> list[dict[str, Any]]:
        named = {"topic": "orders", "broker": broker, "from": giver, "to": taker}
        return [{**named, "queue_id": queue_id} for queue_id in queue_ids]

    def pause(least: int, most: int | None, *, is_over: bool = True) -> dict[str, Any]:
        bounds = {"at_least_s": least, "at_most_s": most, "is_over": is_over}
        return {**bounds, "topic": "orders", "broker": "broker-a", "queue_id": 3}

    happens(1, "joined", long, member_count=3)
    happens(0.98, "queues_moved", moves=[*moves(first, long, 1), *moves(second, long, 3)])
    happens(1.2, "instance_started", long, source=runtime, worker="loops@shop-worker-1", reason="")
    happens(1.3, "scaled", source=runtime, wanted=3, is_stopped=False)
    happens(6, "queues_moved", moves=moves(long, first, 2, 3), pause=pause(825, None, is_over=False))
    happens(6.1, "lost", long, member_count=2)
    died = "its process is gone"
    happens(6.2, "instance_died", long, source=runtime, worker="loops@shop-worker-1", reason=died)
    for minutes in range(9, 40, 6):
        happens(minutes, "lost", f"10.0.3.9@{minutes}#1", member_count=2)
        happens(minutes - 2, "joined", f"10.0.3.9@{minutes}#1", member_count=3)
    happens(44, "queues_moved", moves=moves(first, second, 0, 1), pause=pause(75, 165))
    happens(50, "queues_moved", moves=moves(first, first, 2), pause=pause(0, 0))
    changed = [{"topic": "orders", "before": "*", "after": "paid || refunded"}, {"topic": "stock", "before": "*"}]
    happens(52, "subscription_changed", second, topics=changed)
    happens(160, "gone", second, source=poll, member_count=1)
    told = (now - timedelta(minutes=163)).isoformat()
    here, there = moves(second, first, *range(16)), moves(second, first, *range(16), broker="broker-b")
    happens(161, "queues_moved", source=poll, since=told, moves=[*here, *there], pause=pause(0, 75))
    happens(1_500, "queues_moved", moves=moves("", first, 0, 1, 2, 3), pause=None)
    happens(1_501, "joined", first, member_count=1)
    happens(1_502, "instance_stopped", second, source=runtime, worker="loops@shop-1", reason="its worker stopped")
    now_s = int(now.timestamp())
    # What is between is a gap.
    for state, note, since, until in (
        ("complete", "", 1_600, 700),
        ("complete", "", 640, 170),
        ("failed", "the cluster does not answer: 127.0.0.1:9876", 170, 120),
        ("complete", "", 120, 55),
        ("partial", "no answer from broker-b", 55, 54),
        ("complete", "", 54, 0),
    ):
        found.cluster.sampled_spans.create(
            state=state, note=note, since_s=now_s - 60 * since, until_s=now_s - 60 * until
        )
    _publish(ChangeKind.REBALANCE, group)
    _publish(ChangeKind.REBALANCES)


def real_cluster(namesrv: str) -> None:
    """A cluster "here" whose broker is really there."""
    here = Cluster.objects.create(name="here", namesrv=namesrv)
    poll_once(here, timezone.now())


def indexed(dead_count: int) -> None:
    """As many dead letters as that are in the index; all that beat would have done by then has been done."""

    def has_all() -> bool:
        for here in Cluster.objects.filter(name="here"):
            poll_once(here, timezone.now())
            here.refresh_from_db()
            dead_letter_indexing.index_step(here)
            retry_indexing.index_step(here)
        return DeadLetter.objects.count() >= dead_count

    wait_until(has_all, 120, f"{dead_count} dead letters in the index")


def rules_applied(minutes_later: int) -> None:
    """As beat does it, so many minutes later."""
    apply_rules(timezone.now() + timedelta(minutes=minutes_later))


def beat_drives_replays() -> None:
    """From now on, of all that beat does: a replay goes on that nobody drives, as after a broker was silent."""

    (every_s,) = (entry.every_s for entry in ENTRIES if entry.task == drive_replays.name)

    def beat() -> None:
        while True:
            time.sleep(every_s)
            with suppress(OperationalError):  # the site's database is locked while it begins anew
                drive_replays()

    threading.Thread(target=beat, name="beat", daemon=True).start()


def cluster_with_history(name: str, groups: list[str]) -> None:
    """A cluster whose groups are there now, too; what they did lies in the history of reports."""
    now = timezone.now()
    cluster = seed.make_cluster(name, now=now)
    for group in groups:
        seed.make_group(cluster, group, now=now)


def reports_kept(name: str, folders: dict[str, str]) -> None:
    """What Spark wrote of some days becomes their reports."""
    import pyarrow.parquet as pq  # this one step reads Parquet, and loading takes its time

    from mqadmin.reports import keeping, spark_job, working  # as these do

    cluster, now = Cluster.objects.get(name=name), timezone.now()
    for day, folder in folders.items():
        keeping.keep(
            cluster,
            date.fromisoformat(day),
            pq.read_table(f"{folder}/{spark_job.GROUPS}", partitioning=None).to_pylist(),
            folder=Path(folder),
            root=working.results_root(),
            objectives=objectives_of(cluster, now),
            now=now,
        )


def second_person(name: str, password: str) -> None:
    get_user_model().objects.create_superuser(name, password=password)


def group_stalls(group: str) -> None:
    """The group stalls, and the next look at the rules finds it."""
    lag_becomes(group, lag=4_811, verdict="stalled")
    Group.objects.filter(name=group).update(verdict_rule="offset_stands", verdict_numbers={"members": 2, "lag": 4_811})
    AlertRule.objects.update(for_s=0)
    evaluate(timezone.now())


def group_is_well(group: str) -> None:
    lag_becomes(group, lag=0, verdict="ok")
    evaluate(timezone.now())


STEPS: dict[str, Callable[..., Any]] = {
    step.__name__: step
    for step in (
        admin,
        empty_cluster,
        cluster_behind,
        cluster_with_history,
        reports_kept,
        shop,
        failure_raised,
        clusters,
        cluster_falls_silent,
        hosted,
        lag_becomes,
        token,
        sessions,
        groups,
        lags_become,
        log_ins_end,
        flows,
        verdicts_turn,
        member_joins,
        rebalanced,
        real_cluster,
        indexed,
        rules_applied,
        beat_drives_replays,
        second_person,
        group_stalls,
        group_is_well,
    )
}


def _publish(kind: ChangeKind, group: str = "") -> None:
    publish([Change(kind, "local", group)])


def main() -> None:
    for line in sys.stdin:
        order: dict[str, Any] = json.loads(line)
        print(json.dumps(STEPS[order.pop("step")](**order)), flush=True)


if __name__ == "__main__":
    main()
