"""Records what the console knows of five groups on a real Apache RocketMQ 5.4.0, look by look, as rules are given it.

    tests/java/fetch.sh && python -m tests.mqadmin.lag.recorded.record        about four minutes

Writes `apache-5.4.0.json` beside itself: by group the VerdictInput of each look. What they are to be called stands in
`test_recorded_verdicts.py`, by hand.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec

HERE = Path(__file__).parent
# Two minutes: a queue stands for one of them before it is judged by that.
RECORDED_S = 135.0
# As polling a cluster is due.
CYCLE_S = 15.0
# Group → options of its one member. A listener that puts off the same message again and again holds its queue.
HELD_MS = 600_000
GROUPS: dict[str, dict[str, Any]] = {
    "keeps-up": {},
    "stopped": {},
    "stalled-listener": {"orderly": True, "outcomes": {"late0": ["later"] * 1_000}},
    "slow-listener": {"outcomes": {"late0": [{"do": "ok", "sleep_ms": HELD_MS}]}},
    "broadcasting": {"set": {"messageModel": "BROADCASTING", "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET"}},
}


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="record-") as folder:
        os.environ |= {"MQADMIN_DATA": folder, "MQADMIN_LOG_LEVEL": "error"}
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mqadmin.settings")
        found = _record(Path(folder))
    lines = [
        f"{msgspec.json.encode(group).decode()}: [\n  "
        + ",\n  ".join(msgspec.json.encode(look).decode() for look in looks)
        + "\n ]"
        for group, looks in sorted(found.items())
    ]
    (HERE / "apache-5.4.0.json").write_text("{\n " + ",\n ".join(lines) + "\n}\n")


def _record(folder: Path) -> dict[str, list[Any]]:
    """Imports Django only here: its imports need the settings, and those the environment that `main` made."""
    import django  # after `main`, see above

    django.setup()
    from django.core.management import call_command  # after setup
    from django.utils import timezone  # after setup

    from mqadmin.clusters.models import Cluster, ClusterKind, ClusterState, Group  # after setup
    from mqadmin.lag import measuring  # after setup
    from mqadmin.lag.verdicts import Judgement, VerdictInput  # after setup
    from mqadmin.observing import polling_cycle  # after setup
    from mqadmin.subscriptions import asking  # after setup
    from tests.support.apache import ApacheRocketMQ  # after setup
    from tests.support.java_client import JavaClient  # after setup

    call_command("migrate", verbosity=0)
    Cluster.objects.all().delete()
    found: defaultdict[str, list[Any]] = defaultdict(list)
    judge, judge_row, judged_now = measuring.judge, measuring._judge, [""]

    def noting_row(group: Group, *rest: Any) -> None:
        judged_now[0] = group.name
        judge_row(group, *rest)

    def noting(known: VerdictInput) -> Judgement:
        if judged_now[0] in GROUPS:
            found[judged_now[0]].append(known)
        return judge(known)

    measuring.judge, measuring._judge = noting, noting_row  # type: ignore[assignment]
    with ApacheRocketMQ(folder / "apache") as apache, JavaClient("5.4.0", folder / "java", apache.namesrv) as java:
        there = Cluster.objects.create(name="apache", namesrv=apache.namesrv, kind=ClusterKind.APACHE)

        def look() -> None:
            polling_cycle.poll_once(there, timezone.now())
            Cluster.objects.filter(pk=there.pk).update(kind=ClusterKind.APACHE, state=ClusterState.REACHABLE)
            there.refresh_from_db()
            asking.ask_round(there, timezone.now())

        java.producer("sender")
        for group, options in GROUPS.items():
            java.send("sender", group, body="warm-up", count=8)
            java.consumer(group, group, group, **options)
            java.wait_events("consumed", 8, group)
        look()
        java.stop("stopped")
        for group in ("stopped", "stalled-listener", "slow-listener"):
            java.send("sender", group, body="late", count=8)
        found.clear()
        ends_s = time.monotonic() + RECORDED_S
        while time.monotonic() < ends_s:
            began_s = time.monotonic()
            java.send("sender", "keeps-up", body="more", count=4)
            java.send("sender", "broadcasting", body="more", count=4)
            look()
            time.sleep(max(0.0, CYCLE_S - (time.monotonic() - began_s)))
        for group in GROUPS:
            row = Group.objects.get(name=group)
            print(f"{group}: {len(found[group])} looks, {row.verdict} by {row.verdict_rule}", flush=True)
    return dict(found)


if __name__ == "__main__":
    main()
