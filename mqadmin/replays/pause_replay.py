"""Pauses a replay: what is being sent ends, nothing further is sent until it is resumed."""

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
class PauseReplay:
    """Which replay, by its number."""

    replay: Annotated[str, ReplayField()]


def preview(cluster: Cluster, arguments: PauseReplay) -> Preview[ReplayJob]:
    """Raises ActionRefused, ValidationError."""
    return preview_verb(cluster, arguments.replay, Verb.PAUSE)


def carry_out(_cluster: Cluster, _arguments: PauseReplay, preview: Preview[ReplayJob]) -> Iterator[ItemOutcome]:
    yield from carry_out_verb(preview)


def undo(arguments: PauseReplay, _outcomes: Sequence[ItemOutcome]) -> Undo | None:
    """Returns the opposite."""
    return Undo("resume_replay", {"replay": arguments.replay})


DECLARATION: Action[PauseReplay, ReplayJob] = Action(
    name="pause_replay",
    title=gettext_lazy("Pause a replay"),
    permission="mq_replays.change_replayjob",
    arguments=PauseReplay,
    subject="replay",
    preview=preview,
    carry_out=carry_out,
    undo=undo,
)
