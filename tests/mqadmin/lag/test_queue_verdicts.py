"""Verdicts of single queues: the rules of groups, with what the queue was lately."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from mqadmin.clusters.models import Cluster, Group, QueueOffset, TopicQueue, Verdict
from mqadmin.clusters.waiting import noted
from mqadmin.lag import queue_verdicts
from mqadmin.lag.packing import QueueSample
from mqadmin.lag.queue_verdicts import QueueMoment, judge_queue

NOW = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def queue(lag: int, *, stands_s: float = 5, waits_s: float = 5, **values: Any) -> QueueOffset:
    row = QueueOffset(
        group=Group(cluster=Cluster(), name="billing", member_count=1),
        topic_name="orders",
        broker_name="a",
        queue_id=0,
        committed_offset=1000,
        committed_since=ago(stands_s),
        moved_at=ago(stands_s),
        **values,
    )
    row.end = TopicQueue(max_offset=1000 + lag, max_history=noted(b"", int(ago(waits_s).timestamp()), 1000 + lag))
    return row


def sampled(ago_s: float, lag: int, *, committed: int = 900, waits_s: float = 5, group: str = "ok") -> QueueMoment:
    """`waits_s`: for how long the next message had been waiting then."""
    since_ms = int(ago(ago_s + waits_s).timestamp() * 1000) if lag else 0
    return QueueMoment(ago(ago_s), QueueSample("a", 0, committed, committed + lag, since_ms), Verdict(group), 1)


def moving(lag_from: int, lag_to: int) -> list[QueueMoment]:
    """Samples of the last seven minutes, one each half minute; the queue moves, and its lag goes evenly."""
    agos = range(420, 0, -30)
    step = (lag_to - lag_from) / len(agos)
    return [sampled(ago_s, round(lag_from + step * number), committed=10 * number) for number, ago_s in enumerate(agos)]


STOOD = [sampled(300, 9, committed=900, waits_s=10), sampled(40, 9, committed=950)]
CASES = {
    "its lag grows": (
        queue(500, waits_s=70),
        moving(100, 500),
        (Verdict.SLOW, "lag_grows"),
    ),
    "its lag grows, and nothing waits too long": (
        queue(500, waits_s=5),
        moving(100, 500),
        (Verdict.OK, "keeps_up"),
    ),
    "it is behind, and its lag does not grow": (
        queue(100, waits_s=70),
        moving(100, 100),
        (Verdict.OK, "catching_up"),
    ),
    "nothing was sampled": (queue(500, waits_s=70), [], (Verdict.OK, "catching_up")),
    "it stood until lately": (queue(9), STOOD, (Verdict.STALLED, "settling")),
    "it stood until it moved a moment ago": (
        queue(9),
        [sampled(300, 9, committed=900, waits_s=10)],
        (Verdict.STALLED, "settling"),
    ),
    "it stood until a minute ago": (
        queue(9),
        [sampled(400, 9, committed=900, waits_s=10), sampled(61, 9, committed=950), sampled(30, 9, committed=960)],
        (Verdict.OK, "keeps_up"),
    ),
    "it stood until lately, and nothing waits any more": (queue(0), STOOD, (Verdict.OK, "keeps_up")),
    "its listener took long until lately": (
        queue(9),
        [
            sampled(300, 9, committed=900, waits_s=10),
            sampled(230, 9, committed=900, waits_s=80, group="busy"),
            sampled(40, 9, committed=950, group="busy"),
        ],
        (Verdict.BUSY, "settling"),
    ),
    "it stands": (queue(9, stands_s=60, waits_s=60), [], (Verdict.STALLED, "offset_stands")),
    "it was moved back": (queue(9, rewound_from=1009), [], (Verdict.REWOUND, "rewound")),
    "no member pulls it": (queue(9, stands_s=60, waits_s=60, owner=""), [], (Verdict.STOPPED, "nobody_pulls")),
    "nothing comes": (queue(0, stands_s=700), [], (Verdict.QUIET, "no_traffic")),
    "nobody subscribes to it": (queue(9, is_subscribed=False), [], (Verdict.QUIET, "not_subscribed")),
}


@pytest.mark.parametrize(("row", "past", "expected"), CASES.values(), ids=CASES.keys())
def test_queue_is_judged_by_what_it_is_and_was(
    row: QueueOffset, past: Sequence[QueueMoment], expected: tuple[Verdict, str]
) -> None:
    judgement = judge_queue(row.group, row, NOW, past=past)
    assert (judgement.verdict, judgement.rule) == expected


def test_queue_that_swings_about_the_limit_of_growth_is_slow_once() -> None:
    """Its lag, sampled twice a minute, grows by a tenth in five minutes, a little more or less."""
    lags = [round(1000 * 1.02 ** (number / 2)) + (number % 2) * 20 for number in range(60)]
    words: list[Verdict] = []
    for newest in range(20, len(lags)):
        past = [
            sampled(30 * (newest - number), lags[number], committed=number, waits_s=90)
            for number in range(newest - 20, newest)
        ]
        row = queue(lags[newest], waits_s=90)
        verdict = judge_queue(row.group, row, NOW, past=past).verdict
        words += [verdict] if not words or words[-1] != verdict else []
    assert words == [Verdict.SLOW]


@pytest.mark.parametrize("seed", range(60))
def test_samples_that_are_passed_over_would_have_changed_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = Random(seed)
    past, committed = [], 900
    for ago_s in range(600, 0, -30):
        committed += draw.choice((0, 0, 10))
        lag, waits_s = draw.choice((0, 5, 40, 400)), draw.choice((1, 20, 59, 61, 200))
        past.append(sampled(ago_s, lag, committed=committed, waits_s=waits_s, group=draw.choice(("ok", "busy"))))
    now = queue(draw.choice((0, 9, 500)), stands_s=draw.choice((5, 45, 90)), waits_s=draw.choice((5, 70)))
    found = judge_queue(now.group, now, NOW, past=past)
    monkeypatch.setattr(queue_verdicts, "_is_calm", lambda *_: False)
    assert found == judge_queue(now.group, now, NOW, past=past)
