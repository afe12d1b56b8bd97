"""Replays driven against our broker: what dies at which moment, what cannot be sent, what people change meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count as counting
from pathlib import Path

import pytest
from django.utils import timezone

from mqadmin.clusters.models import Cluster
from mqadmin.deadletters.models import DeadLetter, Failure, KeptMessage
from mqadmin.observing.gateway import Gateway, ask
from mqadmin.replays import ledger
from mqadmin.replays.driving import drive_step
from mqadmin.replays.limits import ReplayLimits
from mqadmin.replays.models import ReplayEntry, ReplayJob
from mqadmin.replays.sending import Sender
from mqadmin.replays.states import EntryState, JobState, Target
from remoting.wire.bodies.topics import PERM_READ_WRITE, PERM_WRITE, TopicConfig
from tests.support import console_rows as seed
from tests.support.our_broker import OurBroker
from tests.support.reading import all_messages
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.django_db]

LIMITS = ReplayLimits(
    step_s=5.0,
    settle_after_s=0.0,
    look_again_after_s=0.0,
    lease_s=60.0,
    retry_after_s=0.0,
    attempts_max=3,
    judged_from=5,
)
_names = counting()


class Died(Exception):
    """Stands for the end of the process."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OurBroker]:
    with OurBroker(Path(tmp_path_factory.mktemp("broker")) / "store", "async") as broker:
        yield broker


@pytest.fixture
def there(broker: OurBroker) -> Cluster:
    now = timezone.now()
    cluster = seed.make_cluster("there", now=now, namesrv=broker.namesrv)
    seed.make_broker(cluster, "broker-a", now=now, address=broker.broker)
    return cluster


@pytest.fixture
def topic(broker: OurBroker) -> str:
    return make_topic(broker)


def make_topic(broker: OurBroker, perm: int = PERM_READ_WRITE, name: str = "") -> str:
    name = name or f"orders-{next(_names)}"
    config = TopicConfig(topic_name=name, read_queue_nums=1, write_queue_nums=1, perm=perm)

    async def create(gateway: Gateway) -> None:
        assert await gateway.topics.create({broker.broker: config}) == {}

    ask(broker.namesrv, create)
    return name


def make_dead(cluster: Cluster, count: int, origin_topic: str, *, is_kept: bool = True) -> list[DeadLetter]:
    now = timezone.now()
    failure, _ = Failure.objects.get_or_create(
        cluster=cluster, group_name="billing", identity="one", defaults={"first_dead_at": now, "last_dead_at": now}
    )
    first = DeadLetter.objects.count()
    rows = [
        DeadLetter.objects.create(
            cluster=cluster,
            failure=failure,
            group_name="billing",
            broker_name="broker-a",
            queue_id=0,
            queue_offset=1000 + number,
            dead_at=now,
            message_id=f"m{number}",
            offset_message_id="0" * 32,
            origin_topic=origin_topic,
        )
        for number in range(first, first + count)
    ]
    for row in rows:
        body = row.message_id.encode() if is_kept else None
        KeptMessage.objects.create(dead_letter=row, properties={"UNIQ_KEY": row.message_id}, body=body)
    return rows


def make_job(cluster: Cluster, **values: object) -> ReplayJob:
    last = DeadLetter.objects.order_by("-pk").values_list("pk", flat=True)[0]
    fields: dict[str, object] = {
        "identity": f"job {next(_names)}",
        "group_name": "billing",
        "until_id": last,
        "target": Target.ORIGIN,
        "rate_per_s": 1000,
        "stop_percent": 5,
        "created_at": timezone.now(),
    }
    return ReplayJob.objects.create(cluster=cluster, **(fields | values))


def drive_until(job: ReplayJob, fact: Callable[[ReplayJob], bool]) -> ReplayJob:
    def is_so() -> bool:
        drive_step(job.pk, LIMITS)
        job.refresh_from_db()
        return fact(job)

    wait_until(is_so, 60, f"the replay's progress; now {job}")
    return job


def finish(job: ReplayJob) -> ReplayJob:
    return drive_until(job, lambda job: job.state == JobState.DONE)


def states(job: ReplayJob) -> Counter[str]:
    found = Counter(ReplayEntry.objects.filter(job=job).values_list("state", flat=True))
    job.refresh_from_db()
    assert found == Counter({one.value: n for one in EntryState if (n := getattr(job, f"{one.value}_count"))})
    assert found.total() == job.total_count
    return found


def bodies(broker: OurBroker, topic: str) -> list[str]:
    return [message.body.decode() for message in all_messages(broker.broker, topic)]


def test_dead_letters_are_sent_each_once(broker: OurBroker, there: Cluster, topic: str) -> None:
    dead = make_dead(there, 30, topic)
    job = finish(make_job(there))
    assert states(job) == {"sent": 30}
    assert sorted(bodies(broker, topic)) == sorted(one.message_id for one in dead)


@pytest.mark.parametrize("moment", ["before it sends", "after it sent"])
def test_a_process_that_dies_loses_and_doubles_nothing(
    broker: OurBroker, there: Cluster, topic: str, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    dead = make_dead(there, 10, topic)
    job = make_job(there)
    send = Sender.send

    async def die(self: Sender, *arguments: object) -> object:
        if moment == "after it sent":
            await send(self, *arguments)  # type: ignore[arg-type]
        raise Died

    with monkeypatch.context() as patched:
        patched.setattr(Sender, "send", die)
        with pytest.raises(Died):
            drive_step(job.pk, LIMITS)
    assert states(job) == {"sending": 10}
    finish(job)
    assert states(job) == {"sent": 10}
    assert sorted(bodies(broker, topic)) == sorted(one.message_id for one in dead)


def test_what_went_to_an_empty_topic_that_was_made_anew_is_found_by_its_key_and_is_not_sent_again(
    broker: OurBroker, there: Cluster, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_dead(there, 10, topic)
    job = make_job(there)
    send = Sender.send

    async def die(self: Sender, *arguments: object) -> object:
        await send(self, *arguments)  # type: ignore[arg-type]
        raise Died

    async def delete(gateway: Gateway) -> None:
        assert await gateway.topics.delete([broker.broker], topic) == {}

    with monkeypatch.context() as patched:
        patched.setattr(Sender, "send", die)
        with pytest.raises(Died):
            drive_step(job.pk, LIMITS)
    ask(broker.namesrv, delete)
    make_topic(broker, name=topic)
    finish(job)
    assert (states(job), bodies(broker, topic)) == ({"sent": 10}, [])


def test_what_can_be_neither_found_nor_ruled_out_is_unknown_and_is_not_sent_again(
    broker: OurBroker, there: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_dead(there, 4, make_topic(broker, PERM_WRITE))
    job = make_job(there)

    async def die(self: Sender, *_: object) -> object:
        raise Died

    with monkeypatch.context() as patched:
        patched.setattr(Sender, "send", die)
        with pytest.raises(Died):
            drive_step(job.pk, LIMITS)
    finish(job)
    assert states(job) == {"unknown": 4}
    assert "permi" in ReplayEntry.objects.filter(job=job)[0].words.lower()


def test_what_cannot_be_sent_is_refused_by_name_and_the_rest_goes_on(
    broker: OurBroker, there: Cluster, topic: str
) -> None:
    make_dead(there, 2, topic)
    make_dead(there, 1, topic, is_kept=False)
    make_dead(there, 1, "")
    make_dead(there, 1, "gone")
    job = finish(make_job(there))
    assert states(job) == {"sent": 2, "refused": 3}
    words = " | ".join(ReplayEntry.objects.filter(state="refused").values_list("words", flat=True))
    assert "no broker takes messages for topic gone" in words
    assert "is not known: choose another topic" in words
    assert len(bodies(broker, topic)) == 2


def test_what_another_replay_sent_is_skipped_unless_it_is_wanted(broker: OurBroker, there: Cluster, topic: str) -> None:
    make_dead(there, 3, topic)
    first = finish(make_job(there))
    second = finish(make_job(there))
    third = finish(make_job(there, skips_replayed=False))
    assert (states(first), states(second), states(third)) == ({"sent": 3}, {"skipped": 3}, {"sent": 3})
    assert {entry.words for entry in ReplayEntry.objects.filter(job=second)} == {f"replay {first.pk} has sent it"}


def test_a_cancelled_replay_skips_the_rest_and_a_paused_one_sends_nothing(
    broker: OurBroker, there: Cluster, topic: str
) -> None:
    make_dead(there, 50, topic)
    job = make_job(there, rate_per_s=1, state=JobState.PAUSED)
    drive_step(job.pk, LIMITS)
    assert (job.total_count, bodies(broker, topic)) == (0, [])
    ReplayJob.objects.filter(pk=job.pk).update(state=JobState.RUNNING)
    drive_step(job.pk, ReplayLimits(step_s=2.5))
    ReplayJob.objects.filter(pk=job.pk).update(state=JobState.CANCELLED)
    drive_until(job, lambda job: job.waiting_count == job.sending_count == 0)
    counts = states(job)
    assert counts["sent"] + counts["skipped"] == 50
    assert len(bodies(broker, topic)) == counts["sent"]


def test_a_replay_stops_when_too_many_fail_again(broker: OurBroker, there: Cluster, topic: str) -> None:
    make_dead(there, 40, topic)
    job = make_job(there, rate_per_s=5)

    def sent_count() -> int:
        drive_step(job.pk, ReplayLimits(step_s=2.5))
        job.refresh_from_db()
        return job.sent_count

    # A busy machine's step may be over before it has sent; one that has sent has sent its share.
    assert wait_until(sent_count, what="messages sent") >= 5
    ReplayJob.objects.filter(pk=job.pk).update(failed_count=job.sent_count)
    drive_until(job, lambda job: job.state == JobState.STOPPED)
    assert "failed again" in job.problem
    assert states(job)["waiting"] > 0


def test_a_process_that_lost_its_lease_writes_nothing(there: Cluster, topic: str) -> None:
    make_dead(there, 1, topic)
    job = make_job(there)
    old = ledger.take(job.pk, timezone.now(), lease_s=0)
    new = ledger.take(job.pk, timezone.now())
    assert old is not None
    assert new is not None
    with pytest.raises(ledger.LeaseLost), ledger.held(job.pk, old):
        pass
    assert ledger.take(job.pk, timezone.now()) is None
