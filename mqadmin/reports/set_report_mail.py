"""Says who gets the mail of each night's report of a cluster, in one language; nobody, where no address is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mqadmin.actions.declaration import Action, Change, ItemOutcome, ItemState, Preview, Undo
from mqadmin.alerts.fields import mail_addresses
from mqadmin.clusters.models import Cluster
from mqadmin.reports.mailing import recipients_of
from mqadmin.reports.models import MailRecipients

# Each of a cluster in one language; a mailing list has more.
RECIPIENTS_MAX = 50
RECIPIENTS_CHARS_MAX = 5000
# Addresses are shown to those who may set them, and to nobody else.
ADDRESSES_PERMISSION = "mq_reports.change_mailrecipients"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetReportMail:
    language: Annotated[str, forms.ChoiceField(label=gettext_lazy("Language"), choices=settings.LANGUAGES)]
    recipients: Annotated[
        str,
        forms.CharField(
            label=gettext_lazy("Mail addresses"),
            max_length=RECIPIENTS_CHARS_MAX,
            required=False,
            help_text=gettext_lazy("Separated by blanks or commas. Empty: nobody gets the mail in this language."),
        ),
    ] = ""


def preview(cluster: Cluster, arguments: SetReportMail) -> Preview[str]:
    """Returns the addresses before and after. Raises ValidationError by argument."""
    addresses = mail_addresses(arguments.recipients)
    if len(addresses) > RECIPIENTS_MAX:
        words = _("It has %(most)d recipients at most; a mailing list has more.")
        raise ValidationError({"recipients": words % {"most": RECIPIENTS_MAX}})
    text = " ".join(addresses)
    warnings = []
    if addresses:
        warnings.append(_("Whoever has the mail can open the summary of its day for 7 days without logging in."))
    if addresses and not settings.EMAIL_HOST:
        warnings.append(_("This installation names no mail server yet: set MQADMIN_MAIL."))
    before = " ".join(recipients_of(cluster.pk, arguments.language))
    return Preview((Change("", {"recipients": before}, {"recipients": text}),), text, tuple(warnings))


def carry_out(cluster: Cluster, arguments: SetReportMail, preview: Preview[str]) -> Iterator[ItemOutcome]:
    """Writes the row, or removes it."""
    (change,) = preview.changes
    if not change.is_change:
        yield change.unchanged()
        return
    rows, language = MailRecipients.objects, arguments.language
    try:
        with transaction.atomic():
            if preview.plan:
                rows.update_or_create(cluster=cluster, language=language, defaults={"addresses": preview.plan})
            else:
                rows.filter(cluster=cluster, language=language).delete()
    except IntegrityError:
        yield change.failed(_("The cluster was removed in between."))
        return
    yield change.done()


def undo(arguments: SetReportMail, outcomes: Sequence[ItemOutcome]) -> Undo | None:
    """Returns the same action with the addresses before."""
    (outcome,) = outcomes
    if outcome.state != ItemState.DONE or outcome.before is None:
        return None
    return Undo("set_report_mail", {"language": arguments.language, **outcome.before})


def adapt(form: forms.Form, cluster: Cluster, language: str) -> None:
    """Starts at the present addresses."""
    form.fields["recipients"].initial = " ".join(recipients_of(cluster.pk, language))


DECLARATION: Action[SetReportMail, str] = Action(
    name="set_report_mail",
    title=gettext_lazy("Set who gets the mail of every night"),
    permission=ADDRESSES_PERMISSION,
    arguments=SetReportMail,
    subject="language",
    preview=preview,
    carry_out=carry_out,
    undo=undo,
    adapt=adapt,
)
