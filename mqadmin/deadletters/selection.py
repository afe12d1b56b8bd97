"""Which dead letters of a group people mean: what the lists filter by, or single ones, frozen as JSON.

A selection that has a text, or whose bodies go to a topic of choice, keeps the role of whoever made it: bodies are
searched, and sent, as far as that role may see them, whenever it is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Protocol

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MinLengthValidator
from django.db.models import QuerySet, Sum
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mqadmin.actions.arguments import CountField
from mqadmin.actions.declaration import ActionRefused
from mqadmin.clusters.models import Cluster
from mqadmin.clusters.query_time import TookTooLong, ended_after
from mqadmin.clusters.selectors.newest_rows import NewestRows
from mqadmin.deadletters.matching_rows import MatchingRows
from mqadmin.deadletters.models import DeadLetter, Failure
from mqadmin.deadletters.search_texts import SEARCHED_CHARS_MIN
from mqadmin.deadletters.selectors import DeadLetterFilter, dead_letters
from mqadmin.people.masking import concerns
from mqadmin.people.roles import Role
from mqadmin.people.words import YES_NO

Selected = NewestRows[DeadLetter] | MatchingRows

# Picked one by one.
IDS_MAX = 1000
IDS_CHARS_MAX = IDS_MAX * 20
# Of those found by a text, which only looking at each of them tells.
COUNTED_MAX = 2000
# Of the others: a look at each takes some tenths of a second for all, and nobody waits for more.
ROWS_COUNTED_MAX = 100_000
# For which a request waits. Of ten million, a filter that no index has may read all.
FOUND_WITHIN_S = 10.0
TEXT_CHARS_MAX = 200


class IdsField(forms.CharField):
    """Numbers of dead letters, separated by blanks or commas; the value is a text of them in order, each once."""

    def clean(self, value: Any) -> Any:
        text = str(super().clean(value) or "")
        words = text.replace(",", " ").split()
        if any(not (word.isascii() and word.isdigit() and len(word) <= 18) for word in words):
            raise ValidationError(_("Give the numbers of dead letters: 17 18 21"))
        if len(words) > IDS_MAX:
            raise ValidationError(_("At most %(n)d can be picked; choose by a filter instead.") % {"n": IDS_MAX})
        return " ".join(str(one) for one in sorted({int(word) for word in words}))


# Arguments of the actions that are about a selection.
FailureArgument = Annotated[
    int | None, CountField(label=gettext_lazy("Failure"), help_text=gettext_lazy("Those of this failure alone."))
]
TextArgument = Annotated[
    str,
    forms.CharField(
        label=gettext_lazy("Search"),
        max_length=TEXT_CHARS_MAX,
        help_text=gettext_lazy("As on the list: an id, a key, or a part of topic, tag, error or property."),
    ),
]
BodyArgument = Annotated[
    str,
    forms.CharField(
        label=gettext_lazy("In the body"),
        max_length=TEXT_CHARS_MAX,
        validators=[MinLengthValidator(SEARCHED_CHARS_MIN)],
        help_text=gettext_lazy("A part of the body, three characters or more."),
    ),
]
SinceArgument = Annotated[datetime | None, forms.DateTimeField(label=gettext_lazy("Died since"))]
UntilArgument = Annotated[datetime | None, forms.DateTimeField(label=gettext_lazy("Died before"))]
UserPropertyArgument = Annotated[
    str,
    forms.CharField(
        label=gettext_lazy("Property of the sender"),
        max_length=TEXT_CHARS_MAX,
        help_text=gettext_lazy("name=value; case and signs do not count."),
    ),
]
AttemptsArgument = Annotated[
    int | None,
    CountField(label=gettext_lazy("Attempts"), help_text=gettext_lazy("Those that failed exactly so often.")),
]
BornSinceArgument = Annotated[datetime | None, forms.DateTimeField(label=gettext_lazy("First sent since"))]
BornUntilArgument = Annotated[datetime | None, forms.DateTimeField(label=gettext_lazy("First sent before"))]
ArchivedArgument = Annotated[
    str, forms.ChoiceField(label=gettext_lazy("Those that are archived"), choices=YES_NO, widget=forms.RadioSelect)
]
IdsArgument = Annotated[
    str,
    IdsField(
        label=gettext_lazy("Picked"),
        max_length=IDS_CHARS_MAX,
        help_text=gettext_lazy("Numbers of dead letters; none: all that the other fields say."),
    ),
]


class SaysWhich(Protocol):
    """The arguments of an action that is about a selection; it has the ones above by these names."""

    @property
    def failure(self) -> int | None: ...
    @property
    def text(self) -> str: ...
    @property
    def body(self) -> str: ...
    @property
    def since(self) -> datetime | None: ...
    @property
    def until(self) -> datetime | None: ...
    @property
    def user_property(self) -> str: ...
    @property
    def attempts(self) -> int | None: ...
    @property
    def born_since(self) -> datetime | None: ...
    @property
    def born_until(self) -> datetime | None: ...
    @property
    def ids(self) -> str: ...


def selection_of(arguments: SaysWhich, role: Role | None, *, is_archived: bool) -> dict[str, Any]:
    """Returns the selection as rows keep it; what is not said is left out. `role` is that of whoever makes it."""
    said = {
        "failure": arguments.failure,
        "text": arguments.text,
        "body": arguments.body,
        "since": arguments.since and arguments.since.isoformat(),
        "until": arguments.until and arguments.until.isoformat(),
        "user_property": arguments.user_property,
        "attempts": arguments.attempts,
        "born_since": arguments.born_since and arguments.born_since.isoformat(),
        "born_until": arguments.born_until and arguments.born_until.isoformat(),
        "archived": is_archived or None,
        "ids": [int(one) for one in arguments.ids.split()],
        "role": limiting(role) if arguments.body else "",
    }
    return {name: value for name, value in said.items() if value not in (None, "", [])}


def limiting(role: Role | None) -> str:
    """Returns the role where bodies are hidden from it; else "": then all who select the same select the same."""
    if role is None:
        return Role.VIEWER.value
    return role.value if any(concerns(rule, role) for rule in settings.MQADMIN_MASKED) else ""


def selected(cluster: Cluster, group: str, selection: Mapping[str, Any], *, until_id: int) -> Selected:
    """Returns the dead letters of the selection that were indexed as `until_id` or before, in the order of the list."""
    wanted = DeadLetterFilter(
        group=group,
        failure_id=selection.get("failure"),
        text=selection.get("text", ""),
        body=selection.get("body", ""),
        role=Role(selection.get("role", Role.ADMIN)),
        since=_moment(selection.get("since")),
        until=_moment(selection.get("until")),
        user_property=selection.get("user_property", ""),
        attempts=selection.get("attempts"),
        born_since=_moment(selection.get("born_since")),
        born_until=_moment(selection.get("born_until")),
        is_archived=selection.get("archived", False),
    )
    found = dead_letters(cluster, wanted)
    rows = found.rows.filter(pk__lte=until_id)
    if "ids" in selection:
        rows = rows.filter(pk__in=selection["ids"])
    return replace(found, rows=rows)


@contextmanager
def awaited() -> Iterator[None]:
    """Raises ActionRefused where looking at a selection takes longer than FOUND_WITHIN_S."""
    try:
        with ended_after(FOUND_WITHIN_S):
            yield
    except TookTooLong as error:
        raise ActionRefused(
            _(
                "The database was still looking for them after %(seconds)d s, and was told to stop. Say it more"
                " narrowly: one failure, one more word, a longer part of the body, or fewer days."
            )
            % {"seconds": FOUND_WITHIN_S}
        ) from error


def counted(found: Selected) -> tuple[QuerySet[DeadLetter], bool]:
    """Returns the rows of a selection as a query, and whether it has more: the first ROWS_COUNTED_MAX, of a text
    COUNTED_MAX."""
    if isinstance(found, NewestRows):
        # In the order of their index, so that those beyond are not read.
        ids = found.in_order().values("pk")
        if not ids[ROWS_COUNTED_MAX : ROWS_COUNTED_MAX + 1]:
            return found.rows, False
        return DeadLetter.objects.filter(pk__in=ids[:ROWS_COUNTED_MAX]), True
    of_text = [row.pk for row in found.after(None, COUNTED_MAX + 1)]
    return DeadLetter.objects.filter(pk__in=of_text[:COUNTED_MAX]), len(of_text) > COUNTED_MAX


def estimated(cluster: Cluster, group: str, selection: Mapping[str, Any]) -> int | None:
    """Returns about how many a group, or a failure of it, has, by the counts of its failures, archived ones included;
    None where anything else is selected."""
    if not selection.keys() <= {"failure", "role"}:
        return None
    failures = Failure.objects.filter(cluster=cluster, group_name=group)
    if "failure" in selection:
        failures = failures.filter(pk=selection["failure"])
    return int(failures.aggregate(n=Sum("dead_count"))["n"] or 0)


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
