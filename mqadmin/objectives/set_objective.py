"""Sets how much lag is allowed: to one group, to all that fit a pattern, or with `*` to all of a cluster.

What held before ends and is kept, so that reports judge the past by what held then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from django import forms
from django.core.exceptions import ValidationError
from django.db import IntegrityError
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mqadmin.actions.declaration import Action, Change, ItemOutcome, ItemState, Preview, Undo
from mqadmin.clusters.models import NAME_CHARS_MAX, Cluster
from mqadmin.objectives import keeping, selectors
from mqadmin.objectives.models import Objective
from mqadmin.objectives.values import LAG_MAX, LAG_S_MAX, is_pattern

# Each group's name is held against all of them.
PATTERNS_MAX = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class SetObjective:
    group: Annotated[
        str,
        forms.CharField(
            label=gettext_lazy("Group"),
            max_length=NAME_CHARS_MAX,
            help_text=gettext_lazy("A name, a pattern such as billing-*, or * for all groups of the cluster."),
        ),
    ]
    lag_s: Annotated[
        int | None,
        forms.IntegerField(
            label=gettext_lazy("Longest wait in seconds"),
            required=False,
            min_value=1,
            max_value=LAG_S_MAX,
            help_text=gettext_lazy("How long the next message may wait. Empty: what is allowed more generally holds."),
        ),
    ] = None
    lag: Annotated[
        int | None,
        forms.IntegerField(
            label=gettext_lazy("Most messages"),
            required=False,
            min_value=0,
            max_value=LAG_MAX,
            help_text=gettext_lazy("How many messages may wait. Empty: any number."),
        ),
    ] = None


def preview(cluster: Cluster, arguments: SetObjective) -> Preview[None]:
    """Returns what is allowed before and after, to exactly this name or pattern."""
    if arguments.lag_s is None and arguments.lag is not None:
        raise ValidationError({"lag_s": _("Say how long a message may wait, too.")})
    before = _said(selectors.present(cluster, arguments.group))
    if not before and is_pattern(arguments.group) and _pattern_count(cluster) >= PATTERNS_MAX:
        raise ValidationError({"group": _("There are %(max)d patterns already.") % {"max": PATTERNS_MAX}})
    after: dict[str, Any] = {} if arguments.lag_s is None else {"lag_s": arguments.lag_s, "lag": arguments.lag}
    return Preview((Change("", before, after),), None)


def carry_out(cluster: Cluster, arguments: SetObjective, preview: Preview[None]) -> Iterator[ItemOutcome]:
    """Ends the row that held and begins the next."""
    (change,) = preview.changes
    if not change.is_change:
        yield change.unchanged()
        return
    try:
        keeping.keep(cluster, arguments.group, arguments.lag_s, arguments.lag, timezone.now())
    except IntegrityError:
        yield change.failed(_("Somebody else has set it in between."))
        return
    yield change.done()


def undo(arguments: SetObjective, outcomes: Sequence[ItemOutcome]) -> Undo | None:
    """Returns the same action with what was allowed before."""
    (outcome,) = outcomes
    if outcome.state != ItemState.DONE or outcome.before is None:
        return None
    return Undo("set_objective", {"group": arguments.group, "lag_s": None, "lag": None, **outcome.before})


def adapt(form: forms.Form, cluster: Cluster, group: str) -> None:
    """Sets what holds in the form; of many there is none."""
    for name, value in _said(selectors.present(cluster, group)).items():
        form.fields[name].initial = value


def _said(row: Objective | None) -> dict[str, Any]:
    return {} if row is None else {"lag_s": row.lag_s, "lag": row.lag}


def _pattern_count(cluster: Cluster) -> int:
    said = Objective.objects.filter(cluster=cluster, is_declared=False, valid_until=None)
    return sum(is_pattern(name) for name in said.values_list("group", flat=True))


DECLARATION: Action[SetObjective, None] = Action(
    name="set_objective",
    title=gettext_lazy("Set how much lag is allowed"),
    permission="mq_objectives.change_objective",
    arguments=SetObjective,
    subject="group",
    preview=preview,
    carry_out=carry_out,
    undo=undo,
    adapt=adapt,
)
