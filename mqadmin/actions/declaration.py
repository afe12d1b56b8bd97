"""What an action declares, and the values that its functions take and return.

`Values` are plain JSON, since they are shown, fingerprinted and kept in the audit. {} means "does not exist", None "not
known".
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
    """A rule forbids the action; the text says which one, and what to do now."""


class ActionUnavailable(Exception):
    """No broker or name server answered the preview's questions; the text names their addresses."""


class ItemState(StrEnum):
    """The state of one item after the run. UNKNOWN: the request was sent and its answer was lost."""

    DONE = "done"
    UNCHANGED = "unchanged"
    FAILED = "failed"
    SKIPPED = "skipped"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ItemOutcome:
    """One item (a broker, a name server) after the run. `words` say why it is not done.

    `secret` is what the run made and shows once (a token, a password): whoever ran it gets it, the audit never does.
    """

    item: str
    state: ItemState
    before: Values | None
    after: Values | None
    words: str = ""
    secret: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Change:
    """The values of one item now and after the run. `item` names a broker or name server; "" is the subject itself."""

    item: str
    before: Values | None
    after: Values
    note: str = ""

    @property
    def is_change(self) -> bool:
        """Tells whether the item has other values after the run, or its present ones are not known."""
        return self.before != self.after

    def done(self, secret: str = "") -> ItemOutcome:
        """Returns the outcome of a change that was made; `secret` is shown once to whoever made it."""
        return ItemOutcome(self.item, ItemState.DONE, self.before, self.after, secret=secret)

    def unchanged(self) -> ItemOutcome:
        """Returns the outcome of an item that had the wanted values already."""
        return ItemOutcome(self.item, ItemState.UNCHANGED, self.before, self.before)

    def failed(self, words: str) -> ItemOutcome:
        """Returns the outcome of a change that was refused; `words` give the reason."""
        return ItemOutcome(self.item, ItemState.FAILED, self.before, self.before, words)

    def skipped(self, words: str) -> ItemOutcome:
        """Returns the outcome of a change that was not tried; `words` give the reason."""
        return ItemOutcome(self.item, ItemState.SKIPPED, self.before, self.before, words)

    def unknown(self, words: str) -> ItemOutcome:
        """Returns the outcome of a change whose answer was lost; `words` give the error."""
        return ItemOutcome(self.item, ItemState.UNKNOWN, self.before, None, words)


@dataclass(frozen=True, slots=True)
class Preview(Generic[P]):
    """The changes that a run would make now.

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
        """Tells whether a run would change any item."""
        return any(change.is_change for change in self.changes)

    @property
    def fingerprint(self) -> str:
        """Returns the digest by which a run notices that this preview no longer holds."""
        if self.rests_on is not None:
            return fingerprint(self.rests_on)
        return fingerprint({change.item: change.before for change in self.changes})


def fingerprint(rests_on: Values) -> str:
    """Returns a digest of the values that a decision rests on; equal digests mean that none of them has changed."""
    text = json.dumps(rests_on, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Undo:
    """The run that takes another one back: an action by its name, with its arguments."""

    action: str
    arguments: Values


def no_undo(_arguments: Any, _outcomes: Sequence[ItemOutcome]) -> Undo | None:
    """Returns None: nothing takes the action back."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared(Generic[A, P]):
    """What every action says of itself, whatever it is about.

    `name` is a documented contract (audit, REST, Celery), `title` its words, `permission` one of Django's. `arguments`
    is a frozen dataclass whose fields are annotated with form fields; `subject` names the argument that says which
    topic, group or person it is about. With `is_confirmed_by_name` the person types the subject's name: for what
    nothing can take back. `own_argument` names the argument that holds an account's name where nobody needs the
    permission for their own account.
    """

    name: str
    title: _StrOrPromise
    permission: str
    arguments: type[A]
    subject: str
    undo: Callable[[A, Sequence[ItemOutcome]], Undo | None] = no_undo
    is_confirmed_by_name: bool = False
    own_argument: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Action(Declared[A, P]):
    """One verb on a cluster. `adapt` fits the form to a cluster and a subject (choices, present values)."""

    preview: Callable[[Cluster, A], Preview[P]]
    carry_out: Callable[[Cluster, A, Preview[P]], Iterator[ItemOutcome]]
    adapt: Callable[[Form, Cluster, str], None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallationAction(Declared[A, P]):
    """One verb on this installation (its clusters, people, audit). `adapt` fits the form to a subject."""

    preview: Callable[[A], Preview[P]]
    carry_out: Callable[[A, Preview[P]], Iterator[ItemOutcome]]
    adapt: Callable[[Form, str], None] | None = None


AnyAction = Action[Any, Any] | InstallationAction[Any, Any]
