"""Says whose a topic or a group is: two actions, alike but for what they are about.

A text that is not said stays as it is, an empty one is taken away. The name need not be known to a broker: a file may
describe what is made a moment later.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from django import forms
from django.core.validators import URLValidator
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mqadmin.actions.arguments import SaidField
from mqadmin.actions.declaration import Action, Change, ItemOutcome, ItemState, Preview, Undo
from mqadmin.clusters.models import NAME_CHARS_MAX, Cluster
from mqadmin.ownership.models import (
    DESCRIPTION_CHARS_MAX,
    OWNER_CHARS_MAX,
    RUNBOOK_CHARS_MAX,
    Described,
    Ownership,
)

TEXTS = ("owner", "description", "runbook")

_Owner = Annotated[str | None, SaidField(label=gettext_lazy("Owner"), max_length=OWNER_CHARS_MAX)]
_Description = Annotated[
    str | None,
    SaidField(
        label=gettext_lazy("Description"), max_length=DESCRIPTION_CHARS_MAX, widget=forms.Textarea(attrs={"rows": 3})
    ),
]
# A script's address among them would run when somebody follows the link.
_Runbook = Annotated[
    str | None,
    SaidField(
        label=gettext_lazy("Runbook"),
        help_text=gettext_lazy("The address of a page that says what to do when something is wrong."),
        max_length=RUNBOOK_CHARS_MAX,
        validators=[URLValidator(schemes=("http", "https"))],
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeTopic:
    topic: Annotated[str, forms.CharField(label=gettext_lazy("Topic"), max_length=NAME_CHARS_MAX)]
    owner: _Owner = None
    description: _Description = None
    runbook: _Runbook = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeGroup:
    group: Annotated[str, forms.CharField(label=gettext_lazy("Group"), max_length=NAME_CHARS_MAX)]
    owner: _Owner = None
    description: _Description = None
    runbook: _Runbook = None


Describe = DescribeTopic | DescribeGroup


def texts_of(cluster: Cluster, kind: str, name: str) -> dict[str, str]:
    """Returns the three texts, "" where nothing was said."""
    row = Ownership.objects.filter(cluster=cluster, kind=kind, name=name).values(*TEXTS).first()
    return dict(row) if row is not None else dict.fromkeys(TEXTS, "")


def all_texts(cluster: Cluster, kind: str) -> dict[str, dict[str, str]]:
    """Returns the texts of all topics or groups that have any, by name."""
    rows = Ownership.objects.filter(cluster=cluster, kind=kind).values("name", *TEXTS)
    return {row.pop("name"): row for row in rows}


def preview(cluster: Cluster, arguments: Describe) -> Preview[None]:
    """Returns the texts before and after."""
    before = texts_of(cluster, *_place(arguments))
    said = {text: value for text in TEXTS if (value := getattr(arguments, text)) is not None}
    return Preview((Change("", before, before | said),), None)


def carry_out(cluster: Cluster, arguments: Describe, preview: Preview[None]) -> Iterator[ItemOutcome]:
    """Writes the row."""
    (change,) = preview.changes
    if not change.is_change:
        yield change.unchanged()
        return
    kind, name = _place(arguments)
    try:
        with transaction.atomic():
            Ownership.objects.update_or_create(cluster=cluster, kind=kind, name=name, defaults=dict(change.after))
    except IntegrityError:
        yield change.failed(_("The cluster was removed in between."))
        return
    yield change.done()


def undo(arguments: Describe, outcomes: Sequence[ItemOutcome]) -> Undo | None:
    """Returns the same action with the texts before."""
    (outcome,) = outcomes
    if outcome.state != ItemState.DONE or outcome.before is None:
        return None
    kind, name = _place(arguments)
    return Undo(f"describe_{kind}", {kind: name, **outcome.before})


def adapt_topic(form: forms.Form, cluster: Cluster, topic: str) -> None:
    _adapt(form, cluster, Described.TOPIC, topic)


def adapt_group(form: forms.Form, cluster: Cluster, group: str) -> None:
    _adapt(form, cluster, Described.GROUP, group)


def _adapt(form: forms.Form, cluster: Cluster, kind: str, name: str) -> None:
    """Sets the present texts in the form; of many there are none."""
    if not name:
        return
    for text, value in texts_of(cluster, kind, name).items():
        form.fields[text].initial = value


def _place(arguments: Describe) -> tuple[str, str]:
    if isinstance(arguments, DescribeTopic):
        return Described.TOPIC, arguments.topic
    return Described.GROUP, arguments.group


TOPIC_DECLARATION: Action[DescribeTopic, None] = Action(
    name="describe_topic",
    title=gettext_lazy("Say whose a topic is"),
    permission="mq_ownership.change_ownership",
    arguments=DescribeTopic,
    subject="topic",
    preview=preview,
    carry_out=carry_out,
    undo=undo,
    adapt=adapt_topic,
)
GROUP_DECLARATION: Action[DescribeGroup, None] = Action(
    name="describe_group",
    title=gettext_lazy("Say whose a group is"),
    permission="mq_ownership.change_ownership",
    arguments=DescribeGroup,
    subject="group",
    preview=preview,
    carry_out=carry_out,
    undo=undo,
    adapt=adapt_group,
)
