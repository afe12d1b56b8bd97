"""Resumes a replay that was paused, or that stopped by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from django.utils.translation import gettext_lazy

from mqadmin.actions.declaration import Action, ItemOutcome, Preview, Undo
from mqadmin.clusters.models import Cluster
from mqadmin.replays.changing import ReplayField, carry_out_verb, preview_verb
from mqadmin.replays.models import ReplayJob
from mqadmin.replays.states import Verb


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeReplay:
    """Which replay, by its number."""

    replay: Annotated[str, ReplayField()]


def preview(cluster: Cluster, arguments: ResumeReplay) -> Preview[ReplayJob]:
    """Raises ActionRefused, ValidationError."""
    return preview_verb(cluster, arguments.replay, Verb.RESUME)


def carry_out(_cluster: Cluster, _arguments: ResumeReplay, preview: Preview[ReplayJob]) -> Iterator[ItemOutcome]:
    yield from carry_out_verb(preview)


def undo(arguments: ResumeReplay, _outcomes: Sequence[ItemOutcome]) -> Undo | None:
    """Returns the opposite."""
    return Undo("pause_replay", {"replay": arguments.replay})


DECLARATION: Action[ResumeReplay, ReplayJob] = Action(
    name="resume_replay",
    title=gettext_lazy("Resume a replay"),
    permission="mq_replays.change_replayjob",
    arguments=ResumeReplay,
    subject="replay",
    preview=preview,
    carry_out=carry_out,
    undo=undo,
)
