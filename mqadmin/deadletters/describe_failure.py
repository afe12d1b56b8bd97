"""Says whose a failure is, and what is known of it.

A text that is not said stays as it is, an empty one is taken away.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from django import forms
from django.utils.translation import gettext_lazy

from mqadmin.actions.arguments import IdField, SaidField
from mqadmin.actions.declaration import Action, Change, ItemOutcome, ItemState, Preview, Undo
from mqadmin.clusters.models import ID_MAX, Cluster
from mqadmin.deadletters.models import NOTE_CHARS_MAX, OWNER_CHARS_MAX, Failure
from mqadmin.deadletters.subjects import require_failure

TEXTS = ("owner", "note")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeFailure:
    failure: Annotated[int, IdField(label=gettext_lazy("Failure"))]
    owner: Annotated[str | None, SaidField(label=gettext_lazy("Owner"), max_length=OWNER_CHARS_MAX)] = None
    note: Annotated[
        str | None,
        SaidField(label=gettext_lazy("Note"), max_length=NOTE_CHARS_MAX, widget=forms.Textarea(attrs={"rows": 3})),
    ] = None


def preview(cluster: Cluster, arguments: DescribeFailure) -> Preview[Failure]:
    """Returns the texts before and after. Raises ActionRefused where there is no such failure."""
    failure = require_failure(cluster, arguments.failure)
    before = {text: getattr(failure, text) for text in TEXTS}
    said = {text: value for text in TEXTS if (value := getattr(arguments, text)) is not None}
    return Preview((Change("", before, before | said),), failure)


def carry_out(_cluster: Cluster, _arguments: DescribeFailure, preview: Preview[Failure]) -> Iterator[ItemOutcome]:
    """Writes the texts."""
    (change,) = preview.changes
    if not change.is_change:
        yield change.unchanged()
        return
    Failure.objects.filter(pk=preview.plan.pk).update(**change.after)
    yield change.done()


def undo(arguments: DescribeFailure, outcomes: Sequence[ItemOutcome]) -> Undo | None:
    """Returns the same action with the texts before."""
    (outcome,) = outcomes
    if outcome.state != ItemState.DONE or outcome.before is None:
        return None
    return Undo(DECLARATION.name, {"failure": arguments.failure, **outcome.before})


def adapt(form: forms.Form, cluster: Cluster, failure: str) -> None:
    """Sets the present texts in the form."""
    if not (failure.isascii() and failure.isdigit()) or int(failure) > ID_MAX:
        return
    found = Failure.objects.filter(cluster=cluster, pk=int(failure)).values(*TEXTS).first()
    for text, value in (found or {}).items():
        form.fields[text].initial = value


DECLARATION: Action[DescribeFailure, Failure] = Action(
    name="describe_failure",
    title=gettext_lazy("Say whose a failure is"),
    permission="mq_deadletters.change_failure",
    arguments=DescribeFailure,
    subject="failure",
    preview=preview,
    carry_out=carry_out,
    undo=undo,
    adapt=adapt,
)
