"""Reports over REST: what their pages show, as docs/REST.md says it with curl."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import AbstractUser
from django.http import FileResponse
from django.test import Client

from mqadmin.clusters.models import Cluster
from mqadmin.reports.models import DayReport, GroupDay, MailRecipients, ReportMail, ReportRun

DAY = date(2026, 11, 22)
NIGHT = datetime(2026, 11, 23, 1, tzinfo=UTC)
CLUSTER = "/api/v1/clusters/local"
PAGE = Path(__file__).parents[3] / "docs" / "REST.md"


@pytest.fixture
def run(cluster: Cluster) -> ReportRun:
    """A night's run that took 47 s; its English mail was sent, its Chinese one waits for another attempt."""
    figures = {"tasks": 412, "input_bytes": 3_000_000, "shuffle_bytes": 2_000, "garbage_ms": 80}
    run = ReportRun.objects.create(
        since=DAY, until=DAY, is_nightly=True, state="done", asked_at=NIGHT, started_at=NIGHT, row_count=96,
        ended_at=NIGHT + timedelta(seconds=47), percent=100, figures=figures,
    )  # fmt: skip
    mail = {"cluster": cluster, "day": DAY, "run": run, "due_at": NIGHT}
    recipients = "ann@example.com cho@example.com"
    ReportMail.objects.create(
        language="en", state="sent", attempt_count=1, ended_at=NIGHT, recipients=recipients, **mail
    )
    ReportMail.objects.create(language="zh-hans", attempt_count=2, error="the mail server cannot be reached", **mail)
    MailRecipients.objects.create(cluster=cluster, language="en", addresses="ann@example.com bob@example.com")
    return run


@pytest.fixture
def report(cluster: Cluster, tmp_path: Path, settings: Any) -> DayReport:
    """billing missed its objective for 41 minutes; its Parquet is there."""
    settings.MQADMIN_DATA = tmp_path
    totals = {"over_s": 2460, "produced": 900, "consumed": 700, "retried": 12, "dead": 3}
    report = DayReport.objects.create(
        cluster=cluster, day=DAY, made_at=NIGHT, is_whole=True, digest="", folder="run-1", group_count=1, over_count=1,
        **totals,
    )  # fmt: skip
    GroupDay.objects.create(
        report=report, group_name="billing", known_s=86_400, lag_p50=0, lag_p95=80, lag_p99=90, lag_max=100, lag_last=5,
        is_quiet=False, is_abandoned=False, **totals,
    )  # fmt: skip
    groups = tmp_path / "reports" / "v1" / "run-1" / "groups"
    groups.mkdir(parents=True)
    (groups / "part-0.parquet").write_bytes(b"PAR1 and so on")
    return report


@pytest.fixture
def queues(report: DayReport, tmp_path: Path) -> Path:
    """The file with the queues of that day: queue 1 of billing has most of the lag, and four of mail have none."""
    pq, pa = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    figures = {"lag_mean": 2.5, "lag_max": 9, "produced": 300}
    rows = [
        {
            "cluster": "local",
            "consumer_group": "billing",
            "topic": "orders",
            "broker": "broker-a",
            "queue": queue,
            **figures,
            "skew": 4.0 if queue == 1 else 0.5,
            "produced_skew": 1.0,
        }
        for queue in range(3)
    ]
    rows += [
        {**rows[0], "consumer_group": "mail", "queue": queue, "lag_mean": 0.0, "skew": None, "produced_skew": None}
        for queue in range(4)
    ]
    folder = tmp_path / "reports" / "v1" / "run-1" / "queues"
    folder.mkdir()
    pq.write_table(pa.Table.from_pylist(rows), folder / "part-0.parquet")
    return folder


def get(http: Client, path: str, **query: Any) -> Any:
    answer = http.get(f"{CLUSTER}/{path}", query)
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_the_log_of_runs_has_durations_rows_sparks_figures_and_mails(http: Client, run: ReportRun) -> None:
    failed = ReportRun.objects.create(
        cluster_name="local", since=DAY, until=DAY, state="failed", asked_at=NIGHT + timedelta(hours=1), problem="full"
    )
    ReportRun.objects.create(cluster_name="other", since=DAY, until=DAY, asked_at=NIGHT)
    latest, night = get(http, "report-runs")["items"]
    assert (latest["run"], latest["problem"], latest["spark"]["tasks"]) == (failed.pk, "full", 0)
    assert (night["took_s"], night["row_count"], night["spark"]["shuffle_bytes"]) == (47.0, 96, 2_000)
    assert [(mail["language"], mail["state"], mail["error"]) for mail in night["mails"]] == [
        ("en", "sent", ""),
        ("zh-hans", "waiting", "the mail server cannot be reached"),
    ]
    assert get(http, f"report-runs/{run.pk}") == night
    assert get(http, "report-runs", limit=1)["next_cursor"]
    other = ReportRun.objects.get(cluster_name="other")
    assert http.get(f"{CLUSTER}/report-runs/{other.pk}").status_code == 404


def test_mails_say_what_became_of_them_and_not_to_whom_they_go(http: Client, run: ReportRun) -> None:
    answer = http.get(f"{CLUSTER}/report-mails")
    assert [(mail["day"], mail["language"], mail["attempt_count"], mail["run"]) for mail in answer.json()["items"]] == [
        ("2026-11-22", "en", 1, run.pk),
        ("2026-11-22", "zh-hans", 2, run.pk),
    ]
    assert [mail["recipient_count"] for mail in answer.json()["items"]] == [2, 0]
    assert b"example.com" not in answer.content


@pytest.mark.parametrize(("role", "status"), [("admin", 200), ("operator", 403), ("viewer", 403)])
def test_who_gets_the_mail_is_told_to_those_who_may_set_it(
    run: ReportRun, ann: AbstractUser, token_of: Callable[..., Client], role: str, status: int
) -> None:
    answer = token_of(ann, role=role).get(f"{CLUSTER}/report-mail-recipients")
    assert answer.status_code == status
    if status == 200:
        assert answer.json()["items"] == [
            {"language": "en", "recipients": ["ann@example.com", "bob@example.com"]},
            {"language": "zh-hans", "recipients": []},
        ]


@pytest.mark.parametrize(("role", "status"), [("admin", 200), ("operator", 403), ("viewer", 403)])
def test_who_got_the_mail_of_a_night_is_told_to_those_who_may_set_it(
    run: ReportRun, ann: AbstractUser, token_of: Callable[..., Client], role: str, status: int
) -> None:
    client = token_of(ann, role=role)
    answer = client.get(f"{CLUSTER}/report-mails/2026-11-22/recipients")
    assert (answer.status_code, "ETag" in answer) == (status, False)
    if status == 200:
        assert answer.json()["items"] == [
            {"language": "en", "recipients": ["ann@example.com", "cho@example.com"]},
            {"language": "zh-hans", "recipients": []},
        ]
        assert client.get(f"{CLUSTER}/report-mails/never/recipients").status_code == 404


def test_queues_of_a_day_are_read_page_by_page_the_most_uneven_first(http: Client, queues: Path) -> None:
    found, cursor = [], ""
    for _page in range(4):
        answer = get(http, "reports/2026-11-22/queues", limit=2, cursor=cursor)
        assert answer["total_count"] == 7
        found += answer["items"]
        cursor = answer["next_cursor"]
    assert cursor is None
    assert [(row["group"], row["queue"]) for row in found] == [
        *(("billing", 1), ("billing", 0), ("billing", 2)),
        *(("mail", queue) for queue in range(4)),
    ]
    assert found[0] == {
        "group": "billing",
        "topic": "orders",
        "broker": "broker-a",
        "queue": 1,
        "lag_mean": 2.5,
        "lag_max": 9,
        "produced": 300,
        "skew": 4.0,
        "produced_skew": 1.0,
    }
    assert found[-1]["skew"] is None
    of_group = get(http, "reports/2026-11-22/queues", group="mail")
    assert [row["queue"] for row in of_group["items"]] == [0, 1, 2, 3]
    assert get(http, "reports/2026-11-22/queues", group="nobody")["items"] == []


def test_queues_of_a_day_are_sent_as_csv_and_as_parquet(http: Client, queues: Path) -> None:
    answer: Any = http.get(f"{CLUSTER}/reports/2026-11-22/queues", {"format": "csv"})

    async def whole() -> bytes:
        return b"".join([part async for part in answer])

    rows = async_to_sync(whole)().decode().splitlines()
    assert len(rows) == 8
    assert "billing,orders,broker-a,1,2.5,9,300,4.0,1.0" in rows[1]
    sent: Any = http.get(f"{CLUSTER}/reports/2026-11-22/queues.parquet")
    assert sent["Content-Disposition"] == 'attachment; filename="local-2026-11-22-queues.parquet"'
    assert b"".join(sent) == (queues / "part-0.parquet").read_bytes()


@pytest.fixture
def hours(report: DayReport, tmp_path: Path) -> Path:
    """The file with the hours of that day: two of mail, and two of billing in the wrong order."""
    pq, pa = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    begin_ms = int(datetime(2026, 11, 22, tzinfo=UTC).timestamp()) * 1000
    counts = dict.fromkeys(("retried", "dead", "gap_produced", "gap_consumed", "gap_retried", "gap_dead"), 0)
    rows = [
        {
            "cluster": "local",
            "consumer_group": group,
            "hour": begin_ms + hour * 3_600_000,
            "known_ms": 3_600_000,
            "lag_mean": 2.5,
            "lag_p50": 1.0,
            "lag_p95": 8.5,
            "lag_max": 9,
            "lag_last": 3,
            "over_ms": 61_500,
            "produced": 300,
            "consumed": 298,
            "retry_wait_ms": 1_000,
            "members": 2,
            **counts,
        }
        for group, hour in (("mail", 0), ("billing", 14), ("mail", 1), ("billing", 2))
    ]
    folder = tmp_path / "reports" / "v1" / "run-1" / "hours"
    folder.mkdir()
    pq.write_table(pa.Table.from_pylist(rows), folder / "part-0.parquet")
    return folder


def test_hours_of_a_day_are_read_group_by_group(http: Client, hours: Path) -> None:
    first = get(http, "reports/2026-11-22/hours", limit=3)
    last = get(http, "reports/2026-11-22/hours", limit=3, cursor=first["next_cursor"])
    assert (first["total_count"], last["next_cursor"]) == (4, None)
    found = [*first["items"], *last["items"]]
    assert [(row["group"], row["at"]) for row in found] == [
        ("billing", "2026-11-22T02:00:00Z"),
        ("billing", "2026-11-22T14:00:00Z"),
        ("mail", "2026-11-22T00:00:00Z"),
        ("mail", "2026-11-22T01:00:00Z"),
    ]
    assert {
        name: found[0][name] for name in ("known_s", "over_s", "retry_wait_s", "lag_p50", "lag_p95", "lag_max")
    } == {"known_s": 3600, "over_s": 61, "retry_wait_s": 1, "lag_p50": 1.0, "lag_p95": 8.5, "lag_max": 9}
    of_group = get(http, "reports/2026-11-22/hours", group="mail")["items"]
    assert [row["group"] for row in of_group] == ["mail", "mail"]


def test_hours_of_a_day_are_sent_as_csv_and_as_parquet(http: Client, hours: Path) -> None:
    answer: Any = http.get(f"{CLUSTER}/reports/2026-11-22/hours", {"format": "csv"})

    async def whole() -> bytes:
        return b"".join([part async for part in answer])

    rows = async_to_sync(whole)().decode().splitlines()
    assert rows[0].startswith("group,at,known_s,lag_mean,lag_p50,lag_p95,lag_max")
    assert rows[1].startswith("billing,2026-11-22T02:00:00Z,3600,2.5,1.0,8.5,9,3,61,300,298")
    sent: Any = http.get(f"{CLUSTER}/reports/2026-11-22/hours.parquet")
    assert sent["Content-Disposition"] == 'attachment; filename="local-2026-11-22-hours.parquet"'
    assert b"".join(sent) == (hours / "part-0.parquet").read_bytes()


def test_hours_of_a_report_from_before_they_had_percentiles_lack_these_alone(http: Client, hours: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    path = hours / "part-0.parquet"
    pq.write_table(pq.read_table(path, partitioning=None).drop_columns(["lag_p50", "lag_p95"]), path)
    (row, *_) = get(http, "reports/2026-11-22/hours")["items"]
    assert (row["lag_p50"], row["lag_p95"], row["lag_mean"]) == (None, None, 2.5)


def torn(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def damaged_page(path: Path) -> None:
    """Its footer is whole, the pages before it are not."""
    content = bytearray(path.read_bytes())
    content[4 : len(content) // 3] = b"\xff" * (len(content) // 3 - 4)
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [torn, damaged_page])
@pytest.mark.parametrize("name", ["queues", "hours"])
@pytest.mark.parametrize("form", ["json", "csv"])
def test_a_damaged_file_is_a_problem_with_words(
    http: Client, queues: Path, hours: Path, damage: Callable[[Path], None], name: str, form: str
) -> None:
    path = queues.parent / name / "part-0.parquet"
    damage(path)
    answer = http.get(f"{CLUSTER}/reports/2026-11-22/{name}", {"format": form})
    assert (answer.status_code, answer["Content-Type"]) == (503, "application/problem+json")
    assert answer.json()["detail"] == f"{path} cannot be read: make the report of 2026-11-22 again."


def test_a_file_that_is_not_on_this_machine_is_not_found(http: Client, report: DayReport) -> None:
    DayReport.objects.update(folder="elsewhere")
    never = ("reports/never/groups.parquet", "reports/never/queues", "reports/periods/never")
    here = [
        f"reports/2026-11-22/{name}"
        for name in ("groups.parquet", "queues", "queues.parquet", "hours", "hours.parquet")
    ]
    for path in (*never, *here):
        assert http.get(f"{CLUSTER}/{path}").status_code == 404, path


def test_every_curl_of_the_page_is_answered(
    queues: Path, hours: Path, run: ReportRun, ann: AbstractUser, token_of: Callable[..., Client], monkeypatch: Any
) -> None:
    monkeypatch.setattr("mqadmin.reports.tasks.wake", lambda: None)
    monkeypatch.setattr("mqadmin.reports.make_report.missing_packages", list)
    section = PAGE.read_text(encoding="utf-8").split("### Reports")[1].split("```")[1]
    calls = re.findall(r"^curl .*$", section, re.MULTILINE)
    assert len(calls) == 15
    client = token_of(ann)
    for call in calls:
        words = shlex.split(call)
        address = next(word for word in words if word.startswith("$API/")).replace("$API", CLUSTER)
        if "-d" in words:
            body = words[words.index("-d") + 1]
            answer = client.post(address, body, content_type="application/json")
        else:
            answer = client.get(address)
        assert answer.status_code == 200, call
        if isinstance(answer, FileResponse):
            # Read to its end, it is closed as the client closes answers: without the connection to the database.
            assert b"".join(answer).startswith(b"PAR1")
    assert ReportRun.objects.filter(cluster_name="local", since=DAY, state="waiting").exists()
