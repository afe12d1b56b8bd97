"""Removes the audit's entries from before a day. What is left says where it was cut, and this very run is in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated

from django import forms
from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mqadmin.actions.declaration import Change, InstallationAction, ItemOutcome, Preview
from mqadmin.audit import chain
from mqadmin.audit.models import AuditEntry

# So that nobody removes the traces of what was done this month.
KEPT_AT_LEAST = timedelta(days=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpireAudit:
    """The first day (UTC) whose entries stay."""

    before: Annotated[
        date,
        forms.DateField(
            label=gettext_lazy("Remove what is older than"),
            help_text=gettext_lazy("A day, as 2026-01-31. Its own entries and all later ones stay."),
            widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
            input_formats=["%Y-%m-%d"],
        ),
    ]


def preview(arguments: ExpireAudit) -> Preview[datetime]:
    """Counts the entries that go and those that stay. Raises ValidationError for a day that is too recent."""
    moment = datetime.combine(arguments.before, time(), UTC)
    if moment > timezone.now() - KEPT_AT_LEAST:
        words = _("The entries of the last %(days)d days always stay: choose an earlier day.")
        raise ValidationError({"before": words % {"days": KEPT_AT_LEAST.days}})
    old = AuditEntry.objects.filter(at__lt=moment).count()
    kept = AuditEntry.objects.count() - old
    change = Change("", {"entries": old + kept}, {"entries": kept})
    warnings = [_("They are gone for good. Export them first if anybody may ask for them.")] if old else []
    # The entries that stay grow by themselves.
    return Preview((change,), moment, tuple(warnings), rests_on={"old": old})


def carry_out(_arguments: ExpireAudit, preview: Preview[datetime]) -> Iterator[ItemOutcome]:
    """Cuts the chain."""
    (change,) = preview.changes
    cut = chain.cut_before(preview.plan)
    if cut is None:
        yield change.unchanged()
        return
    words = _("%(count)d entries, %(first)s to %(last)s, up to number %(through)d.") % {
        "count": cut.removed_count,
        "first": cut.first_at.date().isoformat(),
        "last": cut.last_at.date().isoformat(),
        "through": cut.through,
    }
    outcome = change.done()
    yield ItemOutcome(outcome.item, outcome.state, outcome.before, outcome.after, words)


DECLARATION: InstallationAction[ExpireAudit, datetime] = InstallationAction(
    name="expire_audit",
    title=gettext_lazy("Remove old audit entries"),
    permission="mq_audit.delete_auditentry",
    arguments=ExpireAudit,
    subject="before",
    preview=preview,
    carry_out=carry_out,
    is_confirmed_by_name=True,
)
