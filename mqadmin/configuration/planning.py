"""Compares a file with what is there, by the previews of the actions, and applies the difference by running them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from mqadmin.action_runs import many, runner
from mqadmin.action_runs.runs import InProgress, Result
from mqadmin.actions import declaration, registry
from mqadmin.actions.arguments import InvalidArguments, declared_form
from mqadmin.actions.declaration import ActionRefused, ActionUnavailable, Change, Preview
from mqadmin.clusters.models import Cluster, Group, Topic, TopicKind
from mqadmin.configuration.document import SETTINGS, TEXTS, Entry
from mqadmin.groups.settings import all_on_brokers as all_groups
from mqadmin.ownership.describe import all_texts
from mqadmin.ownership.models import Described
from mqadmin.ownership.selectors import names_of_owner
from mqadmin.people.caller import Caller
from mqadmin.topics.settings import all_on_brokers as all_topics

_ALL_ON_BROKERS = {"topic": all_topics, "group": all_groups}


class PlanError(Exception):
    """The file asks for something that an action refuses, or nobody answers; the text names line and key.

    `action` and `arguments` are what was asked; the cause is the exception of its preview.
    """

    def __init__(self, words: str, action: str, arguments: Mapping[str, Any]) -> None:
        super().__init__(words)
        self.action = action
        self.arguments = arguments


@dataclass(frozen=True, slots=True)
class Step:
    """One run of an action that would change something."""

    action: str
    entry: Entry
    arguments: Mapping[str, Any]
    preview: Preview[Any]

    @property
    def changes(self) -> list[Change]:
        return [change for change in self.preview.changes if change.is_change]


def plan(caller: Caller, cluster: Cluster, entries: list[Entry]) -> list[Step]:
    """Returns what differs, in the file's order. Raises PlanError."""
    steps = [step for entry in entries for step in _steps(caller, cluster, entry)]
    return [step for step in steps if step.preview.has_changes]


def fingerprint(steps: Sequence[Step]) -> str:
    """Returns a digest of what a plan rests on: equal digests mean that applying would do the same."""
    rests_on = {f"{step.action}\n{step.entry.name}": [step.preview.fingerprint, step.arguments] for step in steps}
    return declaration.fingerprint(rests_on)


def apply(
    caller: Caller, cluster: Cluster, steps: Sequence[Step], batch: uuid.UUID | None = None, file: str = ""
) -> Iterator[tuple[Step, Result | InProgress]]:
    """Runs the steps one by one; a step whose subject changed since the plan is refused, and the next one is run.

    `batch` is by what the audit finds the runs together; each step of `file` (a digest) is carried out once of it.
    """
    batch = batch or uuid.uuid4()
    for step in steps:
        yield (
            step,
            runner.run(
                caller,
                step.action,
                cluster.name,
                step.arguments,
                key=key_of_step(batch, cluster, step.action, step.entry.name, file),
                fingerprint=step.preview.fingerprint,
                batch=batch,
            ),
        )


def key_of_step(batch: uuid.UUID, cluster: Cluster, action: str, name: str, file: str) -> str:
    """Returns the key under which a step is carried out once."""
    return str(uuid.uuid5(batch, f"{cluster.name}\n{action}\n{name}\n{file}"))


def batch_of(caller: Caller, key: str) -> uuid.UUID:
    """Returns what the runs of one application have in common: the same for the same key of the same person."""
    return many.batch_of(caller, f"configuration\n{key}" if key else "")


def names(cluster: Cluster, text: str = "", owner: str = "") -> list[tuple[str, str]]:
    """Returns kind and name of the topics and groups that people made: all, or those with a text or of an owner."""
    topics = Topic.objects.filter(cluster=cluster, kind=TopicKind.NORMAL)
    groups = Group.objects.filter(cluster=cluster, is_system=False)
    found: list[tuple[str, str]] = []
    for kind, rows in ((Described.TOPIC, topics), (Described.GROUP, groups)):
        chosen: QuerySet[Any] = rows.filter(name__icontains=text) if text else rows
        if owner:
            chosen = chosen.filter(name__in=names_of_owner(cluster, kind, owner))
        found += [(kind.value, name) for name in chosen.order_by("name").values_list("name", flat=True)]
    return found


def export(
    caller: Caller, cluster: Cluster, chosen: Sequence[tuple[str, str]] | None = None
) -> tuple[list[Entry], list[str]]:
    """Returns the topics and groups that people made, as their brokers have them, and what could not be read.

    `chosen` are some of `names`. A setting that brokers have differently is left out, and said. A read-only cluster is
    exported like any other. Each broker is asked for all topics and all groups at once, within SAMPLE_TIMEOUT_S.
    """
    entries: list[Entry] = []
    left_out: list[str] = []
    of_kind: dict[str, list[str]] = {}
    for kind, name in names(cluster) if chosen is None else chosen:
        of_kind.setdefault(kind, []).append(name)
    for kind, wanted in of_kind.items():
        _export_kind(caller, cluster, kind, wanted, entries, left_out)
    return entries, left_out


def _export_kind(
    caller: Caller, cluster: Cluster, kind: str, wanted: list[str], entries: list[Entry], left_out: list[str]
) -> None:
    """Adds what there is of a kind to `entries`, and what could not be read to `left_out`."""
    if not runner.may(caller, f"create_{kind}", cluster.name):
        left_out.append(_("Your account lacks the right to ask the brokers for the settings of topics and groups."))
        return
    try:
        present = _ALL_ON_BROKERS[kind](cluster)
    except ActionUnavailable as error:
        left_out += [f"{kind} {name}: {error}" for name in wanted]
        return
    texts = all_texts(cluster, kind)
    rules = declared_form(registry.find(f"create_{kind}")).fields[kind]
    for name in wanted:
        try:
            rules.clean(name)
        except ValidationError as error:
            left_out.append(f"{kind} {name}: {' '.join(error.messages)}")
            continue
        found = present(name)
        having = list(found.having.values())
        common = having[0] if having and not found.differing else {}
        if having and not common:
            words = _("%(kind)s %(name)s: its brokers differ, so its settings are left out")
            left_out.append(words % {"kind": kind, "name": name})
        said = {key: value for key, value in texts.get(name, {}).items() if value}
        settings = {key: common[key] for key in SETTINGS[kind] if key in common}
        entries.append(Entry(kind, name, 0, {**said, **settings}, {}))
    if wanted:
        left_out += [f"{broker}: {reason}" for broker, reason in present(wanted[0]).failures.items()]


def _steps(caller: Caller, cluster: Cluster, entry: Entry) -> Iterator[Step]:
    settings, texts = entry.part(SETTINGS[entry.kind]), entry.part(TEXTS)
    if settings:
        yield _step(caller, f"create_{entry.kind}", cluster, entry, settings)
    if texts:
        yield _step(caller, f"describe_{entry.kind}", cluster, entry, texts)


def _step(caller: Caller, action: str, cluster: Cluster, entry: Entry, values: Mapping[str, Any]) -> Step:
    arguments = {entry.kind: entry.name, **values}
    return Step(action, entry, arguments, _preview(caller, action, cluster, arguments, entry))


def _preview(
    caller: Caller,
    action: str,
    cluster: Cluster,
    arguments: Mapping[str, Any],
    entry: Entry,
) -> Preview[Any]:
    place = f"{entry.kind} {entry.name}"
    try:
        return runner.preview(caller, action, cluster.name, arguments)
    except InvalidArguments as error:
        key, words = next(iter(error.errors.items()))
        line = entry.lines.get(key, entry.line)
        reason = f"{place}: {key or action}: {' '.join(words)}"
        raise PlanError(_at(line, reason), action, arguments) from error
    except (ActionRefused, ActionUnavailable) as error:
        raise PlanError(_at(entry.line, f"{place}: {error}"), action, arguments) from error


def _at(line: int, words: str) -> str:
    """Returns the words with the line that they are about; line 0 is of no file."""
    if not line:
        return words
    return _("line %(line)d: %(words)s") % {"line": line, "words": words}
