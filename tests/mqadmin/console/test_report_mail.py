"""The mail about a night's report: asked for once, in each language, tried again; and its link opens that day alone."""

# ruff: noqa: F811 - a fixture is imported and asked for by the same name

from __future__ import annotations

import email
import email.policy
import re
import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from django.core import mail as outbox
from django.core import signing
from django.core.mail import EmailMultiAlternatives
from django.test import Client

from mqadmin.clusters.models import Cluster
from mqadmin.console import report_mail, tasks
from mqadmin.people.roles import Role
from mqadmin.reports import mailing
from mqadmin.reports.models import DayReport, GroupDay, MailRecipients, ReportMail, ReportRun, RunState
from tests.support.mail_server import MailServer, mail_server  # noqa: F401 - a fixture
from tests.support.people import make_person

DAY = date(2026, 11, 20)
NIGHT = datetime(2026, 11, 21, 1, 5, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _mail_server(settings: Any) -> None:
    settings.EMAIL_HOST = "mail.example.com"
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    settings.DEFAULT_FROM_EMAIL = "mqadmin@example.com"
    settings.MQADMIN_URL = "https://mq.example.com"


@pytest.fixture
def report(cluster: Cluster) -> DayReport:
    """billing missed its objective for 41 minutes and got worse."""
    report = DayReport.objects.create(
        cluster=cluster, day=DAY, made_at=NIGHT, is_whole=True, digest="", folder="none", group_count=2, over_count=1,
        over_s=2460, produced=900, consumed=700, retried=12, dead=3,
    )  # fmt: skip
    figures = {"known_s": 86_400, "lag_p50": 0, "lag_p99": 90, "lag_max": 100, "consumed": 350, "produced": 450}
    GroupDay.objects.create(
        report=report, group_name="billing", over_s=2460, over_s_before=60, lag_p95=80, lag_last=5, retried=12, dead=3,
        is_quiet=False, is_abandoned=False, failures=[["shop.PaymentTimeout", "orders", 3]], **figures,
    )  # fmt: skip
    GroupDay.objects.create(
        report=report, group_name="</td><b>", over_s=0, lag_p95=1, lag_last=0, retried=0, dead=0, is_quiet=False,
        is_abandoned=False, **figures,
    )  # fmt: skip
    return report


@pytest.fixture
def run(report: DayReport) -> ReportRun:
    return ReportRun.objects.create(
        since=DAY, until=DAY, is_nightly=True, asked_at=NIGHT, started_at=NIGHT, state=RunState.RUNNING
    )


def recipients(cluster: Cluster, language: str = "en", addresses: str = "ann@example.com bob@example.com") -> None:
    MailRecipients.objects.create(cluster=cluster, language=language, addresses=addresses)


def deliver_due(at: datetime = NIGHT) -> list[str]:
    return [str(mailing.deliver(pk, attempt, at, report_mail.send)) for pk, attempt in mailing.DELIVERIES.hand_out(at)]


def written() -> tuple[EmailMultiAlternatives, str]:
    """Returns the one mail, and its HTML."""
    (one,) = outbox.outbox
    assert isinstance(one, EmailMultiAlternatives)
    ((page, kind),) = one.alternatives
    assert kind == "text/html"
    return one, str(page)


def link() -> str:
    """Returns the address in the mail, without the host."""
    found = re.search(r"^https://mq\.example\.com(/mailed-reports/\S+)$", str(written()[0].body), re.MULTILINE)
    assert found is not None
    return found[1]


def mailed(cluster: Cluster, run: ReportRun, language: str = "en") -> str:
    """Has the mail sent; returns its link."""
    recipients(cluster, language)
    mailing.ask(run, cluster, DAY, NIGHT)
    assert deliver_due() == ["sent"]
    return link()


def test_a_mail_says_what_got_worse_and_links_the_day(cluster: Cluster, run: ReportRun) -> None:
    mailed(cluster, run)
    one, page = written()
    text = str(one.body)
    assert one.to == ["ann@example.com", "bob@example.com"]
    assert one.subject == "local: 1 group missed its objective on Nov. 20, 2026: billing, for 41 m 00 s"
    assert one.extra_headers["Message-ID"] == f"<report-{cluster.pk}-2026-11-20-en@mqadmin>"
    worse = "billing got worse: over its objective for 41 m 00 s, a week before for 1 m 00 s."
    assert text.index(worse) < text.index("3 messages died, most in billing, of PaymentTimeout.")
    assert worse in page
    assert "came in: 900" in text
    assert "- </td><b>: 0" in text
    assert "&lt;/td&gt;&lt;b&gt;" in page
    assert "https://mq.example.com/clusters/local/reports/2026-11-20/" in text
    assert link() in page


def test_each_language_has_its_own_mail(cluster: Cluster, run: ReportRun) -> None:
    recipients(cluster)
    recipients(cluster, "zh-hans", "li@example.com")
    mailing.ask(run, cluster, DAY, NIGHT)
    assert deliver_due() == ["sent", "sent"]
    by_person = {one.to[0]: one for one in outbox.outbox}
    assert "PaymentTimeout" in str(by_person["li@example.com"].body)
    assert "got worse" not in str(by_person["li@example.com"].body)
    assert "2026年11月20日" in by_person["li@example.com"].subject
    assert "got worse" in str(by_person["ann@example.com"].body)


@pytest.mark.parametrize(
    ("language", "subject", "worse", "opens"),
    [
        (
            "en",
            "local: 1 group missed its objective on Nov. 20, 2026: billing, for 41 m 00 s",
            "billing got worse: over its objective for 41 m 00 s, a week before for 1 m 00 s.",
            "without logging in",
        ),
        ("zh-hans", "2026年11月20日", "billing", "无需登录"),
    ],
    ids=["English", "Chinese"],
)
def test_a_real_mail_server_gets_text_and_html_whose_link_opens_that_day_alone(
    cluster: Cluster,
    run: ReportRun,
    mail_server: MailServer,
    language: str,
    subject: str,
    worse: str,
    opens: str,
) -> None:
    recipients(cluster, language)
    mailing.ask(run, cluster, DAY, NIGHT)
    assert deliver_due() == ["sent"]
    assert [line.split("<")[1] for line in mail_server.recipients] == ["ann@example.com>", "bob@example.com>"]
    (taken,) = mail_server.texts
    read = email.message_from_bytes(taken, policy=email.policy.default)
    assert (read.get_content_type(), read["From"]) == ("multipart/alternative", "mqadmin@example.com")
    assert subject in read["Subject"]
    plain, rich = (part.get_content() for part in read.iter_parts())
    addresses = [set(re.findall(r"https://mq\.example\.com(/[^\s\"<]+)", part)) for part in (plain, rich)]
    assert addresses[0] == addresses[1]
    signed, whole = sorted(addresses[0], key=lambda one: "mailed-reports" not in one)
    for words in (worse, opens):
        assert words in plain
        assert words in rich
    page = Client().get(signed)
    assert page.status_code == 200
    assert f'<html lang="{language}"' in page.content.decode()
    assert Client().get(whole).status_code == 302
    assert Client().get("/clusters/local/reports/2026-11-20/groups.parquet").status_code == 302


def test_a_night_is_mailed_once_however_often_its_report_is_made(cluster: Cluster, run: ReportRun) -> None:
    mailed(cluster, run)
    again = ReportRun.objects.create(since=DAY, until=DAY, is_nightly=True, asked_at=NIGHT)
    DayReport.objects.update(revision=2)
    mailing.ask(again, cluster, DAY, NIGHT)
    mailing.ask(again, cluster, DAY, NIGHT)
    assert deliver_due(NIGHT + timedelta(days=1)) == []
    assert ReportMail.objects.get().run == run


def test_a_mail_is_handed_out_once_and_a_late_attempt_does_nothing(cluster: Cluster, run: ReportRun) -> None:
    recipients(cluster)
    mailing.ask(run, cluster, DAY, NIGHT)
    ((pk, _attempt),) = mailing.DELIVERIES.hand_out(NIGHT)
    assert mailing.DELIVERIES.hand_out(NIGHT) == []
    later = NIGHT + mailing.CLAIMED_FOR
    assert mailing.DELIVERIES.hand_out(later) == [(pk, 2)]
    assert mailing.deliver(pk, 1, later, report_mail.send) is None
    assert mailing.deliver(pk, 2, later, report_mail.send) == "sent"
    assert len(outbox.outbox) == 1


def test_who_may_set_recipients_sees_to_whom_a_mail_went_and_others_how_many(
    cluster: Cluster, run: ReportRun, http: Client
) -> None:
    mailed(cluster, run)
    recipients_of_later = "later@example.com"
    MailRecipients.objects.update(addresses=recipients_of_later)
    (one,) = ReportMail.objects.all()
    assert one.addresses == ["ann@example.com", "bob@example.com"]
    reader = Client()
    reader.force_login(make_person("reader", Role.VIEWER))
    for client, shown in ((http, True), (reader, False)):
        for headers in ({}, {"HX-Request": "true"}):
            page = client.get("/clusters/local/reports/", headers=headers).content.decode()
            assert "to 2 addresses" in page
            assert ("ann@example.com" in page) is shown
    assert recipients_of_later not in reader.get("/clusters/local/reports/").content.decode()


def test_a_name_without_blanks_breaks_in_the_mail(cluster: Cluster, run: ReportRun) -> None:
    mailed(cluster, run)
    _one, page = written()
    assert re.search(r"body \{[^}]*overflow-wrap: anywhere", page)


def test_without_recipients_nothing_is_mailed_and_those_of_later_get_the_next_night(
    cluster: Cluster, run: ReportRun
) -> None:
    mailing.ask(run, cluster, DAY, NIGHT)
    recipients(cluster)
    assert deliver_due() == []


def test_a_server_that_is_away_is_tried_again_with_growing_pauses_and_given_up(
    cluster: Cluster, run: ReportRun, settings: Any, http: Client
) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    recipients(cluster)
    mailing.ask(run, cluster, DAY, NIGHT)
    at, pauses = NIGHT, []
    while deliver_due(at) == ["waiting"]:
        due_at = ReportMail.objects.get().due_at
        pauses.append((due_at - at).total_seconds())
        at = due_at
    one = ReportMail.objects.get()
    assert (tuple(pauses), one.state) == (mailing.PAUSES_S, "failed")
    assert one.error == "the mail server cannot be reached: Connection refused"
    assert DayReport.objects.get().revision == 1
    page = http.get("/clusters/local/reports/").content.decode()
    assert "mail (English)" in page
    assert one.error in page


def test_no_mail_server_named_fails_for_good_and_the_run_log_says_so(
    cluster: Cluster, run: ReportRun, settings: Any, http: Client
) -> None:
    settings.EMAIL_HOST = ""
    recipients(cluster)
    mailing.ask(run, cluster, DAY, NIGHT)
    assert deliver_due() == ["failed"]
    assert "no mail server is named: set MQADMIN_MAIL" in http.get("/clusters/local/reports/").content.decode()


def test_beats_task_hands_out_and_delivers(cluster: Cluster, run: ReportRun, monkeypatch: pytest.MonkeyPatch) -> None:
    recipients(cluster)
    mailing.ask(run, cluster, DAY, NIGHT)
    monkeypatch.setattr(tasks.deliver_report_mail, "delay", tasks.deliver_report_mail)
    tasks.hand_out_report_mails()
    tasks.hand_out_report_mails()
    assert len(outbox.outbox) == 1


def test_the_link_opens_the_summary_without_logging_in_and_leads_nowhere(
    cluster: Cluster, run: ReportRun, http: Client
) -> None:
    address = mailed(cluster, run, "zh-hans")
    response = Client().get(address)
    page = response.content.decode()
    assert response.status_code == 200
    assert '<html lang="zh-hans"' in page
    assert "billing" in page
    assert "href=" not in page.partition("<body")[2]
    assert (response["Referrer-Policy"], response["X-Robots-Tag"]) == ("no-referrer", "noindex")
    assert "no-store" in response["Cache-Control"]
    assert "sessionid" not in response.cookies
    assert Client().post(address).status_code == 405
    assert Client().get("/clusters/local/reports/2026-11-20/").status_code == 302


def _changed(token: str) -> str:
    return token[:-1] + ("A" if token[-1] != "A" else "B")


def _of_another_use(_token: str) -> str:
    return signing.dumps([1, "2026-11-20", "en"], salt="another")


@pytest.mark.parametrize("other", [_changed, _of_another_use, lambda _token: "x", lambda token: token[:-5]])
def test_another_link_opens_nothing(cluster: Cluster, run: ReportRun, other: Callable[[str], str]) -> None:
    token = mailed(cluster, run).strip("/").partition("/")[2]
    response = Client().get(f"/mailed-reports/{other(token)}/")
    assert response.status_code == 404
    assert "billing" not in response.content.decode()


def test_a_link_holds_for_seven_days(cluster: Cluster, run: ReportRun, monkeypatch: pytest.MonkeyPatch) -> None:
    address = mailed(cluster, run)
    sent_at = time.time()
    monkeypatch.setattr("django.core.signing.time.time", lambda: sent_at + 7 * 86_400 - 60)
    assert Client().get(address).status_code == 200
    monkeypatch.setattr("django.core.signing.time.time", lambda: sent_at + 7 * 86_400 + 60)
    response = Client().get(address)
    assert response.status_code == 410
    assert "billing" not in response.content.decode()


def test_taking_all_recipients_away_shuts_the_links_that_are_out(cluster: Cluster, run: ReportRun) -> None:
    address = mailed(cluster, run)
    MailRecipients.objects.all().delete()
    assert Client().get(address).status_code == 404


def ask_on_the_page(http: Client, addresses: str) -> str:
    address = "/clusters/local/report-mail/en/"
    shown = http.get(address, {"recipients": addresses}).content.decode()
    found = re.search(r'name="key" value="([^"]*)"', shown)
    key = {"key": found[1]} if found is not None else {}
    return http.post(address, {"recipients": addresses, **key}, follow=True).content.decode()


def test_who_gets_it_is_said_on_a_page(http: Client, cluster: Cluster) -> None:
    assert "DONE" in ask_on_the_page(http, "ann@example.com, bob@example.com ann@example.com")
    assert MailRecipients.objects.get().addresses == "ann@example.com bob@example.com"
    assert "ann@example.com, bob@example.com" in http.get("/clusters/local/reports/").content.decode()
    assert "DONE" in ask_on_the_page(http, "")
    assert not MailRecipients.objects.exists()


@pytest.mark.parametrize("addresses", ["ann", " ".join(f"p{number}@example.com" for number in range(51))])
def test_what_is_no_address_and_too_many_are_refused(http: Client, cluster: Cluster, addresses: str) -> None:
    ask_on_the_page(http, addresses)
    assert not MailRecipients.objects.exists()
