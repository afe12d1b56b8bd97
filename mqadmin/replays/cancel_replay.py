"""Cancels a replay: what waits is skipped. What was sent stays sent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from django.utils.translation import gettext_lazy

from mqadmin.actions.declaration import Action, ItemOutcome, Preview
from mqadmin.clusters.models import Cluster
from mqadmin.replays.changing import ReplayField, carry_out_verb, preview_verb
from mqadmin.replays.models import ReplayJob
from mqadmin.replays.states import Verb


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelReplay:
    """Which replay, by its number."""

    replay: Annotated[str, ReplayField()]


def preview(cluster: Cluster, arguments: CancelReplay) -> Preview[ReplayJob]:
    """Raises ActionRefused, ValidationError."""
    return preview_verb(cluster, arguments.replay, Verb.CANCEL)


def carry_out(_cluster: Cluster, _arguments: CancelReplay, preview: Preview[ReplayJob]) -> Iterator[ItemOutcome]:
    yield from carry_out_verb(preview)


DECLARATION: Action[CancelReplay, ReplayJob] = Action(
    name="cancel_replay",
    title=gettext_lazy("Cancel a replay"),
    permission="mq_replays.change_replayjob",
    arguments=CancelReplay,
    subject="replay",
    preview=preview,
    carry_out=carry_out,
)
