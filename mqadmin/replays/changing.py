"""What pausing, resuming and cancelling a replay have in common."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mqadmin.actions.declaration import ActionRefused, Change, ItemOutcome, Preview
from mqadmin.clusters.models import Cluster
from mqadmin.people.current_caller import current_caller
from mqadmin.replays import tasks
from mqadmin.replays.models import ReplayJob
from mqadmin.replays.signals import say_moved
from mqadmin.replays.states import ENDED, JobState, Verb, next_state

NUMBER_CHARS_MAX = 18


class ReplayField(forms.CharField):
    """The number of a replay."""

    def __init__(self) -> None:
        super().__init__(label=gettext_lazy("Replay"), max_length=NUMBER_CHARS_MAX)


def find(cluster: Cluster, number: str) -> ReplayJob:
    """Raises ValidationError for a replay that the cluster does not have."""
    job = (
        ReplayJob.objects.filter(cluster=cluster, pk=int(number)).first()
        if number.isascii() and number.isdigit()
        else None
    )
    if job is None:
        raise ValidationError({"replay": _("This cluster has no replay of this number.")})
    return job


def preview_verb(cluster: Cluster, number: str, verb: Verb) -> Preview[ReplayJob]:
    """Returns the change of the state. Raises ActionRefused where it has ended, or the verb says nothing new."""
    job = find(cluster, number)
    state = JobState(job.state)
    to = next_state(verb, state)
    if to is None:
        words = _("Replay %(number)s is %(state)s: there is nothing to change.")
        raise ActionRefused(words % {"number": job.pk, "state": state.label})
    change = Change("", {"state": state.value}, {"state": to.value})
    return Preview((change,), job, rests_on={"state": state.value})


def carry_out_verb(preview: Preview[ReplayJob]) -> Iterator[ItemOutcome]:
    """Changes the state unless it has changed meanwhile, and has a worker look at once."""
    (change,), job = preview.changes, preview.plan
    values: dict[str, Any] = {"state": change.after["state"], "problem": ""}
    if job.state == JobState.ASKED and values["state"] == JobState.RUNNING:
        values |= {"approved_by": current_caller().name, "approved_at": timezone.now()}
    if values["state"] in ENDED:
        values["ended_at"] = timezone.now()
    if job.state == JobState.STOPPED and values["state"] == JobState.RUNNING:
        values |= {"judged_sent_count": job.sent_count, "judged_failed_count": job.failed_count}
    if not ReplayJob.objects.filter(pk=job.pk, state=job.state).update(**values):
        yield change.failed(_("It has changed its state meanwhile: look again."))
        return
    say_moved(job)
    tasks.wake(job.pk)
    yield change.done()
