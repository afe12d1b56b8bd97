"""The mail about a night's report, and the link in it: it opens the summary of that day, and nothing else.

The link carries which summary it opens, signed by the installation's key, and holds for LINK_AGE. It opens as long as
somebody gets the mail of this cluster in this language: so taking away all recipients shuts the links that are out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from django.conf import settings
from django.core import signing
from django.core.mail import EmailMultiAlternatives
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import translation
from django.utils.translation import gettext_noop

from mqadmin.alerts.channels import mail as mail_channel
from mqadmin.clusters.models import Cluster
from mqadmin.console import report_sentences
from mqadmin.delivery import NotDelivered
from mqadmin.reports import mailing
from mqadmin.reports import selectors as report_selectors
from mqadmin.reports.models import DayReport, ReportMail

LINK_AGE = timedelta(days=7)
# Groups in the mail: what is read at a glance.
GROUPS_MAILED = 10
SALT = "mqadmin.console.report_mail"

_NO_REPORT = gettext_noop("the report is not there any more")


class BadLink(Exception):
    """The link is not one of ours, or what it opens is not there."""


class OldLink(Exception):
    """The link was one of ours, and held until LINK_AGE after its mail."""


@dataclass(frozen=True, slots=True)
class Opened:
    """What a link opens."""

    cluster: Cluster
    day: date
    language: str


def send(mail: ReportMail, recipients: Sequence[str]) -> None:
    """Writes the mail in its language and hands it to the server. Raises NotDelivered."""
    day = mail.day.isoformat()
    with translation.override(mail.language):
        try:
            context = summary(mail.cluster, mail.day)
        except DayReport.DoesNotExist as error:
            raise NotDelivered(_NO_REPORT, is_for_good=True) from error
        context |= {
            "link": settings.MQADMIN_URL + reverse("mailed_report", args=[_signed(mail)]),
            "page_link": settings.MQADMIN_URL + reverse("day_report", args=[mail.cluster.name, day]),
            "link_days": LINK_AGE.days,
        }
        subject = " ".join(f"{mail.cluster.name}: {context['title']}".split())
        text = render_to_string("console/report_mail.txt", context)
        page = render_to_string("console/report_mail.html", context)
    headers = {
        "Message-ID": f"<report-{mail.cluster_id}-{day}-{mail.language}@mqadmin>",
        "Auto-Submitted": "auto-generated",
    }
    written = EmailMultiAlternatives(subject, text, settings.DEFAULT_FROM_EMAIL, list(recipients), headers=headers)
    written.attach_alternative(page, "text/html")
    mail_channel.hand_over(written)


def summary(cluster: Cluster, day: date) -> dict[str, Any]:
    """Returns what the mail and its page say, in the present language. Raises DayReport.DoesNotExist."""
    page = report_selectors.day_page(cluster, day)
    worst = page.groups[0] if page.groups else None
    return {
        "cluster_name": cluster.name,
        "report": page.report,
        "title": report_sentences.day_title(page.report, worst),
        "sentences": report_sentences.day_sentences(page),
        "groups": page.groups[:GROUPS_MAILED],
    }


def opened(token: str) -> Opened:
    """Returns what a link opens. Raises OldLink, BadLink."""
    try:
        cluster_id, day, language = signing.loads(token, salt=SALT, max_age=LINK_AGE)
    except signing.SignatureExpired as error:
        raise OldLink from error
    except signing.BadSignature as error:
        raise BadLink from error
    cluster = Cluster.objects.filter(pk=cluster_id).first()
    if cluster is None or not mailing.recipients_of(cluster_id, language):
        raise BadLink
    return Opened(cluster, date.fromisoformat(day), language)


def _signed(mail: ReportMail) -> str:
    return signing.dumps([mail.cluster_id, mail.day.isoformat(), mail.language], salt=SALT)
