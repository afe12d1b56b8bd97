"""Changes how fast a replay sends, while it runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mqadmin.actions.arguments import CountField
from mqadmin.actions.declaration import Action, ActionRefused, Change, ItemOutcome, Preview, Undo
from mqadmin.clusters.models import Cluster
from mqadmin.replays.changing import ReplayField, find
from mqadmin.replays.models import ReplayJob
from mqadmin.replays.signals import say_moved
from mqadmin.replays.start_replay import RATE_MAX
from mqadmin.replays.states import ENDED


@dataclass(frozen=True, slots=True, kw_only=True)
class SetReplayRate:
    """Which replay, by its number, and how many messages a second."""

    replay: Annotated[str, ReplayField()]
    rate: Annotated[int, CountField(label=gettext_lazy("Messages a second"), min_value=1, max_value=RATE_MAX)]


def preview(cluster: Cluster, arguments: SetReplayRate) -> Preview[ReplayJob]:
    """Raises ActionRefused where it has ended, ValidationError."""
    job = find(cluster, arguments.replay)
    if job.state in ENDED:
        raise ActionRefused(_("Replay %(number)s has ended.") % {"number": job.pk})
    return Preview((Change("", {"rate": job.rate_per_s}, {"rate": arguments.rate}),), job)


def carry_out(_cluster: Cluster, arguments: SetReplayRate, preview: Preview[ReplayJob]) -> Iterator[ItemOutcome]:
    """Writes it; whoever drives the replay reads it within a second."""
    (change,), job = preview.changes, preview.plan
    if not change.is_change:
        yield change.unchanged()
        return
    ReplayJob.objects.filter(pk=job.pk).update(rate_per_s=arguments.rate)
    say_moved(job)
    yield change.done()


def undo(arguments: SetReplayRate, outcomes: Sequence[ItemOutcome]) -> Undo | None:
    """Returns the rate before."""
    before = outcomes[0].before
    return Undo(DECLARATION.name, {"replay": arguments.replay, "rate": before["rate"]}) if before else None


def adapt(form: forms.Form, cluster: Cluster, subject: str) -> None:
    """Starts the form at the present rate."""
    if subject.isascii() and subject.isdigit():
        job = ReplayJob.objects.filter(cluster=cluster, pk=int(subject)).first()
        form.fields["rate"].initial = job.rate_per_s if job is not None else None


DECLARATION: Action[SetReplayRate, ReplayJob] = Action(
    name="set_replay_rate",
    title=gettext_lazy("Change the rate of a replay"),
    permission="mq_replays.change_replayjob",
    arguments=SetReplayRate,
    subject="replay",
    preview=preview,
    carry_out=carry_out,
    undo=undo,
    adapt=adapt,
)
