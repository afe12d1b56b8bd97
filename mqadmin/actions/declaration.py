"""What an action declares, and the values that its functions take and return.

`Values` are plain JSON, since they are shown, fingerprinted and kept in the audit. {} means "does not exist", None "not
known".
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mqadmin.clusters.models import Cluster

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from django.forms import Form
    from django.utils.functional import _StrOrPromise

    A = TypeVar("A", bound=DataclassInstance)
else:
    A = TypeVar("A")
P = TypeVar("P")

Values = Mapping[str, Any]


class ActionRefused(Exception):
    """The action must not be carried out; the text says why, and what to do now."""


class ActionUnavailable(Exception):
    """What the preview rests on could not be learned; the text says from whom. Nothing was changed."""


class ItemState(StrEnum):
    """What became of one item. UNKNOWN: it was asked, and its answer was lost."""

    DONE = "done"
    UNCHANGED = "unchanged"
    FAILED = "failed"
    SKIPPED = "skipped"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ItemOutcome:
    """One item after the run. `words` say why it is not done."""

    item: str
    state: ItemState
    before: Values | None
    after: Values | None
    words: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """One item as it is and as it would be. `item` names a broker or a name server; "" is the subject itself."""

    item: str
    before: Values | None
    after: Values
    note: str = ""

    @property
    def is_change(self) -> bool:
        return self.before != self.after

    def done(self) -> ItemOutcome:
        return ItemOutcome(self.item, ItemState.DONE, self.before, self.after)

    def unchanged(self) -> ItemOutcome:
        return ItemOutcome(self.item, ItemState.UNCHANGED, self.before, self.before)

    def failed(self, words: str) -> ItemOutcome:
        return ItemOutcome(self.item, ItemState.FAILED, self.before, self.before, words)

    def skipped(self, words: str) -> ItemOutcome:
        return ItemOutcome(self.item, ItemState.SKIPPED, self.before, self.before, words)

    def unknown(self, words: str) -> ItemOutcome:
        return ItemOutcome(self.item, ItemState.UNKNOWN, self.before, None, words)


@dataclass(frozen=True, slots=True)
class Preview(Generic[P]):
    """What an action would do now.

    `plan` is what `carry_out` needs beyond the changes (addresses, configurations). `warnings` are sentences about what
    is lost. `rests_on` is what the decision rests on, where that is not simply what the items are before: a count that
    grows every second must not make each preview stale.
    """

    changes: tuple[Change, ...]
    plan: P
    warnings: tuple[str, ...] = ()
    rests_on: Values | None = None

    @property
    def has_changes(self) -> bool:
        return any(change.is_change for change in self.changes)

    @property
    def fingerprint(self) -> str:
        if self.rests_on is not None:
            return fingerprint(self.rests_on)
        return fingerprint({change.item: change.before for change in self.changes})


def fingerprint(rests_on: Values) -> str:
    """Digests what a decision rests on; an equal digest means that nothing of it has changed."""
    text = json.dumps(rests_on, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Undo:
    """The run that takes another one back: an action by its name, with its arguments."""

    action: str
    arguments: Values


def no_undo(_arguments: Any, _outcomes: Sequence[ItemOutcome]) -> Undo | None:
    """Says that nothing takes the action back."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Action(Generic[A, P]):
    """One verb on a cluster.

    `name` is a documented contract (audit, REST, Celery), `title` its words, `permission` one of Django's. `arguments`
    is a frozen dataclass whose fields are annotated with form fields; `subject` names the argument that says which
    topic or group it is about. `adapt` fits the form to a cluster and a subject (choices, present values). With
    `is_confirmed_by_name` the person types the subject's name: for what nothing can take back.
    """

    name: str
    title: _StrOrPromise
    permission: str
    arguments: type[A]
    subject: str
    preview: Callable[[Cluster, A], Preview[P]]
    carry_out: Callable[[Cluster, A, Preview[P]], Iterator[ItemOutcome]]
    undo: Callable[[A, Sequence[ItemOutcome]], Undo | None] = no_undo
    adapt: Callable[[Form, Cluster, str], None] | None = None
    is_confirmed_by_name: bool = False
