"""A process that works on a replay, for tests that kill it: `python -m tests.support.replay_process WHAT …`.

seed NAMESRV ADDRESS TOPIC COUNT RATE [TARGET]    dead letters of that topic, and a replay of them; its number
drive NUMBER                             drives it to its end
say ACTION NUMBER [NAME=VALUE…]          somebody pauses it, resumes it: `pause_replay`; the outcome
ledger NUMBER                            its counts and entries as JSON
"""

from __future__ import annotations

import os
import sys
import time
from datetime import timedelta

import django
import msgspec

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mqadmin.settings")
django.setup()

from django.contrib.auth import get_user_model  # noqa: E402 - models exist only now
from django.utils import timezone  # noqa: E402

from mqadmin.action_runs import runner  # noqa: E402
from mqadmin.action_runs.runs import Result  # noqa: E402
from mqadmin.clusters.models import Broker, Cluster  # noqa: E402
from mqadmin.deadletters.models import DeadLetter, Failure, KeptMessage  # noqa: E402
from mqadmin.replays.driving import Left, drive_step  # noqa: E402
from mqadmin.replays.limits import ReplayLimits  # noqa: E402
from mqadmin.replays.models import ReplayEntry, ReplayJob  # noqa: E402
from mqadmin.replays.states import ENDED, Target  # noqa: E402
from tests.support.callers import caller  # noqa: E402

# Of a process that is killed nothing but its lease stands in the way; what it was sending is over in a moment.
LIMITS = ReplayLimits(
    step_s=3.0, send_within_s=1.0, settle_after_s=4.0, lease_s=3.0, retry_after_s=0.5, attempts_max=200
)
BATCH = 1000


def seed(namesrv: str, address: str, topic: str, count: int, rate: int, target: str = Target.ORIGIN) -> int:
    now = timezone.now()
    cluster, is_new = Cluster.objects.get_or_create(name="there", defaults={"namesrv": namesrv})
    if is_new:
        Broker.objects.create(cluster=cluster, name="broker-a", broker_id=0, address=address, seen_at=now)
    identity = f"of {Failure.objects.count()}"
    failure = Failure.objects.create(
        cluster=cluster, group_name="billing", identity=identity, first_dead_at=now, last_dead_at=now
    )
    # Places that no other dead letter has.
    beyond = DeadLetter.objects.count()
    for first in range(0, count, BATCH):
        rows = DeadLetter.objects.bulk_create(
            DeadLetter(
                cluster=cluster,
                failure=failure,
                group_name="billing",
                broker_name="broker-a",
                queue_id=0,
                queue_offset=beyond + number,
                dead_at=now - timedelta(days=1) + timedelta(milliseconds=number),
                message_id=f"message-{number}",
                offset_message_id="",
                origin_topic=topic,
            )
            for number in range(first, min(first + BATCH, count))
        )
        KeptMessage.objects.bulk_create(
            KeptMessage(dead_letter=row, properties={"UNIQ_KEY": row.message_id}, body=row.message_id.encode())
            for row in rows
        )
    last = DeadLetter.objects.order_by("-pk").values_list("pk", flat=True)[0]
    job = ReplayJob.objects.create(
        cluster=cluster,
        identity=identity,
        group_name="billing",
        selection={"failure": failure.pk},
        until_id=last,
        target=target,
        rate_per_s=rate,
        stop_percent=0,
        created_at=now,
    )
    return job.pk


def drive(number: int) -> None:
    while ReplayJob.objects.filter(pk=number).exclude(state__in=ENDED).exists():
        if drive_step(number, LIMITS).left != Left.NOW:
            time.sleep(0.2)


def say(action: str, number: str, *values: str) -> str:
    somebody, _ = get_user_model().objects.get_or_create(username="somebody", is_superuser=True)
    result = runner.run(
        caller(somebody), action, "there", {"replay": number, **dict(one.split("=", 1) for one in values)}
    )
    return result.outcome if isinstance(result, Result) else "in progress"


def ledger(number: int) -> bytes:
    job = (
        ReplayJob.objects.filter(pk=number)
        .values("state", "problem", "total_count", "waiting_count", "sent_count", "unknown_count")
        .get()
    )
    names = ("id", "message_id", "state", "words", "queue_id", "queue_offset", "new_id")
    return msgspec.json.encode({**job, "entries": list(ReplayEntry.objects.filter(job=number).values(*names))})


def main(what: str, *arguments: str) -> None:
    if what == "seed":
        namesrv, address, topic, count, rate, *target = arguments
        print(seed(namesrv, address, topic, int(count), int(rate), *target))
    elif what == "drive":
        drive(int(arguments[0]))
    elif what == "say":
        print(say(*arguments))
    else:
        print(ledger(int(arguments[0])).decode())


if __name__ == "__main__":
    main(*sys.argv[1:])
