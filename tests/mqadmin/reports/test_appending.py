"""The hot window becomes hours of Parquet: each row with until when it held; the same when it is done again."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from mqadmin.clusters.models import VERDICT_RANKS, Cluster, Group, Verdict
from mqadmin.lag import retention
from mqadmin.lag.gone_groups import GroupGone
from mqadmin.lag.hot_window import BrokersBack, Gap, TopicSample
from mqadmin.lag.models import GroupSample, SampledSpan, SamplingState, SpanState
from mqadmin.lag.packing import QueueSample, Sampled, pack
from mqadmin.reports.appending import Span, append_due, append_hour, spans
from mqadmin.reports.history import GAPS, LAG, BadHistory, History, hour_of

START = datetime(2026, 11, 22, 14, tzinfo=UTC)
START_S = int(START.timestamp())
QUEUES = (QueueSample("a", 0, 4, 10, (START_S - 5) * 1000, 0), QueueSample("a", 1, None, 7, None, None))
DICTIONARY = (Path(__file__).parents[3] / "docs" / "HISTORY.md").read_text(encoding="utf-8")


def sample(at_s: int, topic: str = "orders", group_id: int = 1) -> TopicSample:
    return TopicSample(at_s, group_id, "billing", topic, Verdict.OK, 2, 0, QUEUES)


def test_a_sample_holds_until_the_next_one_of_its_topic_or_until_the_hour_is_over() -> None:
    events = [sample(0), sample(0, "refunds"), sample(30), sample(3605, "refunds")]
    assert list(spans(events, 3600, 3645)) == [
        Span(sample(0), 30),
        Span(sample(0, "refunds"), 3605),
        Span(sample(30), 3600),
    ]


def test_a_gap_ends_all_samples_but_not_one_in_which_other_brokers_answered() -> None:
    events = [sample(0), Gap(60, 90, "partial", ""), Gap(120, 600, "late", ""), sample(600)]
    assert list(spans(events, 3600, 900)) == [Span(sample(0), 120), Span(sample(600), 900)]


def test_a_topic_that_is_read_no_longer_holds_until_then() -> None:
    unread = sample(90)._replace(queues=())
    assert list(spans([sample(0), unread, sample(600)], 3600, 900)) == [Span(sample(0), 90), Span(sample(600), 900)]
    assert list(spans([sample(0), sample(3600)._replace(queues=())], 3600, 3645)) == [Span(sample(0), 3600)]


def test_of_a_broker_that_does_not_answer_nothing_is_known_until_it_is_back() -> None:
    """refunds are on the other broker. Of orders something changes meanwhile, and nothing when it is back."""
    both = (*QUEUES, QueueSample("b", 0, 3, 9, 0, 0))
    unknown = (*QUEUES, QueueSample("b", 0, None, None, None, None))
    orders, refunds = sample(0)._replace(queues=both), sample(0, "refunds")
    changed = sample(90)._replace(queues=both, member_count=7)
    events = [orders, refunds, Gap(60, 120, "partial", "", ("b",)), changed, BrokersBack(150), sample(300)]
    assert sorted(spans(events, 3600, 900)) == [
        Span(orders, 60),
        Span(refunds, 900),
        Span(orders._replace(at_s=60, queues=unknown), 90),
        Span(changed._replace(queues=unknown), 150),
        Span(changed._replace(at_s=150), 300),
        Span(sample(300), 900),
    ]


def test_an_hour_that_begins_while_a_broker_is_away_knows_nothing_of_it() -> None:
    away = (QueueSample("a", 0, None, None, None, None), QueueSample("a", 1, None, None, None, None))
    events = [Gap(-600, 90, "partial", "", ("a",)), sample(0), BrokersBack(3610)]
    assert list(spans(events, 3600, 3645)) == [Span(sample(0)._replace(queues=away), 3610)]


def test_a_group_that_is_gone_ends_its_own_samples() -> None:
    events = [sample(0), sample(0, group_id=2), GroupGone(60, 1), sample(90, group_id=3)]
    assert list(spans(events, 3600, 900)) == [
        Span(sample(0), 60),
        Span(sample(0, group_id=2), 900),
        Span(sample(90, group_id=3), 900),
    ]


def test_a_sample_that_a_gap_follows_at_once_is_left_out() -> None:
    assert list(spans([sample(30), Gap(30, 600, "late", "")], 3600, 900)) == []


@pytest.fixture
def cluster(db: None) -> Cluster:
    """Sampled from 14:00:00 to 14:10:00: a group whose topic changed once."""
    cluster = Cluster.objects.create(name="prod", namesrv="127.0.0.1:9876")
    group = Group.objects.create(cluster=cluster, name="billing", seen_at=START)
    for at_s in (START_S, START_S + 300):
        packed = pack(Sampled(VERDICT_RANKS[Verdict.OK], 2, 0, QUEUES))
        GroupSample.objects.create(cluster=cluster, group=group, topic_name="orders", at_s=at_s, packed=packed)
    SampledSpan.objects.create(cluster=cluster, state=SpanState.COMPLETE, since_s=START_S, until_s=START_S + 600)
    return cluster


def rows(history: History, kind: str = "lag") -> list[dict[str, Any]]:
    return [
        row for path in history.files(kind, START.date()) for row in pq.read_table(path, partitioning=None).to_pylist()
    ]


def test_an_open_hour_is_written_anew_and_says_that_it_is_not_over(cluster: Cluster, tmp_path: Path) -> None:
    history = History(tmp_path)
    now = START + timedelta(minutes=10)
    assert append_due(history, cluster, now) == 2
    first = rows(history)
    assert append_due(history, cluster, now) == 2
    assert rows(history) == first
    assert [(row["at"], row["until"]) for row in first] == [
        (START, START + timedelta(minutes=5)),
        (START + timedelta(minutes=5), now),
    ]
    assert first[0]["committed"] == [4, None]
    assert first[0]["ends"] == [10, 7]
    assert [(gap["state"], gap["at"]) for gap in rows(history, "gaps")] == [("open", now)]


def test_an_hour_that_is_over_is_written_once_and_its_gap_is_known(cluster: Cluster, tmp_path: Path) -> None:
    history = History(tmp_path)
    later = START + timedelta(hours=2)
    assert append_due(history, cluster, later) == 2
    assert history.is_complete("prod", START)
    assert append_due(history, cluster, later) == 0
    assert rows(history)[-1]["until"] == START + timedelta(minutes=10), "nothing is made up for the gap"
    assert [(gap["state"], gap["at"]) for gap in rows(history, "gaps")] == [("late", START + timedelta(minutes=10))]


def test_an_hour_that_is_appended_three_days_late_is_not_lost(cluster: Cluster, tmp_path: Path) -> None:
    history = History(tmp_path)
    append_due(history, cluster, START + timedelta(minutes=5))
    later = START + timedelta(days=3, minutes=1)
    retention.step(cluster, later)
    assert append_due(history, cluster, later) == 2
    assert history.lost("prod", START.date()) == []
    retention.step(cluster, later)
    assert GroupSample.objects.count() == 0, "now the history has it"
    assert SamplingState.objects.get().appended_until_s == hour_of(later).timestamp()


def test_hours_that_were_removed_before_they_were_appended_are_told_as_a_gap(cluster: Cluster, tmp_path: Path) -> None:
    history = History(tmp_path)
    opened = START + timedelta(minutes=7)
    append_due(history, cluster, opened)
    before = rows(history)
    later = START + timedelta(days=4, hours=3)
    for _step in range(2):
        retention.step(cluster, later)
    assert append_due(history, cluster, later) == 0
    assert rows(history) == before, "what was appended of the hour stays"
    gaps = [(gap["at"], gap["until"], gap["state"]) for gap in rows(history, "gaps")]
    assert gaps == [
        (opened, START + timedelta(hours=1), "lost"),
        *((START + timedelta(hours=one), START + timedelta(hours=one + 1), "lost") for one in (1, 2)),
    ]
    assert history.lost("prod", START.date()) == [(opened, START + timedelta(hours=3))]
    append_due(history, cluster, later)
    assert [(gap["at"], gap["until"], gap["state"]) for gap in rows(history, "gaps")] == gaps


def test_what_a_deleted_group_was_stays_in_the_history(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = History(tmp_path)
    append_due(history, cluster, START + timedelta(minutes=4))
    deleted_at = START + timedelta(minutes=8)
    monkeypatch.setattr("django.utils.timezone.now", lambda: deleted_at)
    Group.objects.get().delete()
    for later in (timedelta(minutes=10), timedelta(hours=2)):
        assert append_due(history, cluster, START + later) == 2
        assert [(row["consumer_group"], row["at"], row["until"]) for row in rows(history)] == [
            ("billing", START, START + timedelta(minutes=5)),
            ("billing", START + timedelta(minutes=5), deleted_at),
        ]
    assert append_due(history, cluster, START + timedelta(hours=3)) == 0


def test_how_far_the_history_is_stands_where_an_append_failed(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("mqadmin.reports.appending._lag_table", full)
    with pytest.raises(OSError, match="No space left"):
        append_due(History(tmp_path), cluster, START + timedelta(hours=5))
    assert SamplingState.objects.get().appended_until_s == START_S


def test_an_append_that_fails_leaves_what_was_there(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = History(tmp_path)
    append_hour(history, cluster, START, START + timedelta(minutes=10))
    before = rows(history)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("mqadmin.reports.appending._lag_table", full)
    with pytest.raises(OSError, match="No space left"):
        append_hour(history, cluster, START, START + timedelta(minutes=11))
    assert rows(history) == before
    assert not list(tmp_path.rglob(".*"))


def test_a_file_that_is_not_of_the_history_is_named(cluster: Cluster, tmp_path: Path) -> None:
    history = History(tmp_path)
    append_hour(history, cluster, START, START + timedelta(minutes=10))
    history.path("lag", "other", START).write_bytes(b"not Parquet")
    with pytest.raises(BadHistory, match=r"other\.parquet cannot be read: move it away"):
        history.check("lag", "other", START.date())


def test_days_that_are_older_than_what_is_kept_go(cluster: Cluster, tmp_path: Path) -> None:
    history = History(tmp_path)
    append_hour(history, cluster, START, START + timedelta(minutes=10))
    assert history.remove_before(START.date()) == 0
    assert history.remove_before(START.date() + timedelta(days=1)) == 1
    assert history.days() == []


def test_the_hour_is_that_of_utc() -> None:
    assert hour_of(datetime.fromisoformat("2026-11-22T20:15:00+05:30")) == START


@pytest.mark.parametrize("schema", [LAG, GAPS], ids=["lag", "gaps"])
def test_the_dictionary_has_every_column_and_no_other(schema: Any) -> None:
    title = "lag" if schema is LAG else "gaps"
    table = DICTIONARY.split(f"## `{title}`")[1].split("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == schema.names
