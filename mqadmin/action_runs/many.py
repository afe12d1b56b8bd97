"""One action on many subjects of a cluster at once: each subject is a run of its own, with its own audit entry.

Nothing else differs from a single run: the same checks, the same preview and fingerprint, an outcome per subject. What
the runs have in common is a `batch`, by which the audit finds them together. They are carried out one after another; a
subject that is refused or fails does not stop the others.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from mqadmin.action_runs import runner
from mqadmin.action_runs.runs import BATCH_RUNS_MAX, InProgress, Result
from mqadmin.actions import registry
from mqadmin.actions.arguments import InvalidArguments
from mqadmin.actions.declaration import ActionRefused, ActionUnavailable, Preview
from mqadmin.people.caller import Caller

# After that no further run is begun: the one who asked waits for the answer, and a gateway before us for no longer.
BEGIN_WITHIN_S = 100.0


class WrongSubjects(ValueError):
    """More subjects than BATCH_RUNS_MAX, or none, or one twice; the text says which and what to do."""


@dataclass(frozen=True, slots=True)
class SubjectPreview:
    """What a run would do to one subject; `reason` says why it would be refused, and `preview` is None then."""

    subject: str
    preview: Preview[Any] | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ManyResult:
    """The ends of the runs by subject, in the order asked for. `not_begun` are subjects for which no time was left."""

    batch: uuid.UUID
    results: Mapping[str, Result | InProgress]
    not_begun: tuple[str, ...] = ()


def preview_many(
    caller: Caller, action_name: str, cluster_name: str, values: Mapping[str, Any], subjects: Sequence[str]
) -> Iterator[SubjectPreview]:
    """Yields what a run would do to each subject. Raises WrongSubjects, and what `runner.preview` raises of names."""
    action = registry.find(action_name)
    for subject in checked(subjects):
        try:
            given = {**values, action.subject: subject}
            yield SubjectPreview(subject, runner.preview(caller, action_name, cluster_name, given))
        except (InvalidArguments, ActionRefused, ActionUnavailable) as error:
            yield SubjectPreview(subject, None, str(error))


def run_many(
    caller: Caller,
    action_name: str,
    cluster_name: str,
    values: Mapping[str, Any],
    subjects: Sequence[str],
    *,
    key: str = "",
    fingerprints: Mapping[str, str] | None = None,
    confirmation: str = "",
    clock: Callable[[], float] = time.monotonic,
) -> ManyResult:
    """Carries an action out on each subject, once per `key`.

    `fingerprints` are those of the previews, by subject; a subject without one is refused as stale when others have
    one. Where the action asks for a confirmation, `confirmation` is the number of subjects, written in digits. Raises
    WrongSubjects and what `runner.run` raises.
    """
    action = registry.find(action_name)
    subjects = checked(subjects)
    batch = batch_of(caller, key)
    is_confirmed = confirmation == str(len(subjects))
    started = clock()
    results: dict[str, Result | InProgress] = {}
    for subject in subjects:
        if clock() - started > BEGIN_WITHIN_S:
            break
        results[subject] = runner.run(
            caller,
            action_name,
            cluster_name,
            {**values, action.subject: subject},
            key=str(uuid.uuid5(batch, subject)),
            fingerprint=None if fingerprints is None else fingerprints.get(subject, ""),
            confirmation=subject if is_confirmed else "",
            batch=batch,
        )
    return ManyResult(batch, results, tuple(subjects[len(results) :]))


def batch_of(caller: Caller, key: str) -> uuid.UUID:
    """Returns what the runs of one request have in common: the same for the same key of the same person."""
    return uuid.uuid5(uuid.NAMESPACE_OID, f"{caller.name}\n{key}") if key else uuid.uuid4()


def checked(subjects: Sequence[str]) -> list[str]:
    """Returns the subjects. Raises WrongSubjects."""
    if not subjects:
        raise WrongSubjects(_("Nothing is chosen: choose at least one."))
    if len(subjects) > BATCH_RUNS_MAX:
        words = _("%(n)d are chosen, and %(most)d can be changed at once: choose fewer.")
        raise WrongSubjects(words % {"n": len(subjects), "most": BATCH_RUNS_MAX})
    if len(set(subjects)) != len(subjects):
        raise WrongSubjects(_("One of them is chosen twice."))
    return list(subjects)
