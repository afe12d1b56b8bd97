"""Approves a replay that waits for a second person, or refuses it: two actions, for anybody but whoever started it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from django.utils.translation import gettext_lazy

from mqadmin.actions.declaration import Action, ItemOutcome, ItemState, Preview, Undo
from mqadmin.clusters.models import Cluster
from mqadmin.people.current_caller import current_caller
from mqadmin.replays import approval
from mqadmin.replays.changing import ReplayField, carry_out_verb, preview_verb
from mqadmin.replays.models import ReplayJob
from mqadmin.replays.states import Verb


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproveReplay:
    """Which replay, by its number."""

    replay: Annotated[str, ReplayField()]


def preview_approval(cluster: Cluster, arguments: ApproveReplay) -> Preview[ReplayJob]:
    """Raises ActionRefused, ValidationError."""
    return _preview(cluster, arguments, Verb.APPROVE)


def preview_refusal(cluster: Cluster, arguments: ApproveReplay) -> Preview[ReplayJob]:
    """Raises ActionRefused, ValidationError."""
    return _preview(cluster, arguments, Verb.REFUSE)


def _preview(cluster: Cluster, arguments: ApproveReplay, verb: Verb) -> Preview[ReplayJob]:
    found = preview_verb(cluster, arguments.replay, verb)
    approval.require_another(found.plan, current_caller().name)
    return found


def carry_out(_cluster: Cluster, _arguments: ApproveReplay, preview: Preview[ReplayJob]) -> Iterator[ItemOutcome]:
    yield from carry_out_verb(preview)


def undo_approval(arguments: ApproveReplay, outcomes: Sequence[ItemOutcome]) -> Undo | None:
    """Returns the cancelling of what is not sent by then."""
    return Undo("cancel_replay", {"replay": arguments.replay}) if outcomes[0].state == ItemState.DONE else None


APPROVE_DECLARATION: Action[ApproveReplay, ReplayJob] = Action(
    name="approve_replay",
    title=gettext_lazy("Approve a replay"),
    permission="mq_replays.change_replayjob",
    arguments=ApproveReplay,
    subject="replay",
    preview=preview_approval,
    carry_out=carry_out,
    undo=undo_approval,
)
REFUSE_DECLARATION: Action[ApproveReplay, ReplayJob] = Action(
    name="refuse_replay",
    title=gettext_lazy("Refuse a replay"),
    permission="mq_replays.change_replayjob",
    arguments=ApproveReplay,
    subject="replay",
    preview=preview_refusal,
    carry_out=carry_out,
)
