"""Compares a file with what is there, by the previews of the actions, and applies the difference by running them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mqadmin.actions import runner
from mqadmin.actions.arguments import InvalidArguments
from mqadmin.actions.caller import Caller
from mqadmin.actions.declaration import ActionRefused, ActionUnavailable, Change, Preview
from mqadmin.actions.runs import InProgress, Result
from mqadmin.clusters.models import Cluster, Group, Topic, TopicKind
from mqadmin.configuration.document import SETTINGS, TEXTS, Entry
from mqadmin.ownership.describe import texts_of


class PlanError(Exception):
    """The file asks for something that an action refuses, or nobody answers; the text names line and key."""


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


def apply(caller: Caller, cluster: Cluster, steps: list[Step]) -> Iterator[tuple[Step, Result | InProgress]]:
    """Runs the steps one by one; a step whose subject changed since the plan is refused, and the next one is run."""
    for step in steps:
        yield (
            step,
            runner.run(caller, step.action, cluster.name, step.arguments, fingerprint=step.preview.fingerprint),
        )


def export(caller: Caller, cluster: Cluster) -> tuple[list[Entry], list[str]]:
    """Returns the topics and groups that people made, as their brokers have them, and what could not be read.

    A setting that brokers have differently is left out, and said. Raises PlanError.
    """
    topics = Topic.objects.filter(cluster=cluster, kind=TopicKind.NORMAL).order_by("name")
    groups = Group.objects.filter(cluster=cluster, is_system=False).order_by("name")
    names = [("topic", name) for name in topics.values_list("name", flat=True)]
    names += [("group", name) for name in groups.values_list("name", flat=True)]
    entries, left_out = [], []
    for kind, name in names:
        empty = Entry(kind, name, 0, {}, {})
        try:
            found = _preview(caller, f"create_{kind}", cluster, {kind: name}, empty)
        except PlanError as error:
            left_out.append(str(error))
            continue
        before = [change.before for change in found.changes if change.before]
        common = before[0] if before and all(one == before[0] for one in before) else {}
        if before and not common:
            left_out.append(f"{kind} {name}: its brokers differ, so its settings are left out")
        said = {key: value for key, value in texts_of(cluster, kind, name).items() if value}
        settings = {key: common[key] for key in SETTINGS[kind] if key in common}
        entries.append(Entry(kind, name, 0, {**said, **settings}, {}))
    return entries, left_out


def _steps(caller: Caller, cluster: Cluster, entry: Entry) -> Iterator[Step]:
    settings, texts = entry.part(SETTINGS[entry.kind]), entry.part(TEXTS)
    if settings:
        yield _step(caller, f"create_{entry.kind}", cluster, entry, settings)
    if texts:
        yield _step(
            caller, f"describe_{entry.kind}", cluster, entry, {**texts_of(cluster, entry.kind, entry.name), **texts}
        )


def _step(caller: Caller, action: str, cluster: Cluster, entry: Entry, values: Mapping[str, Any]) -> Step:
    arguments = {entry.kind: entry.name, **values}
    return Step(action, entry, arguments, _preview(caller, action, cluster, arguments, entry))


def _preview(caller: Caller, action: str, cluster: Cluster, arguments: Mapping[str, Any], entry: Entry) -> Preview[Any]:
    place = f"{entry.kind} {entry.name}"
    try:
        return runner.preview(caller, action, cluster.name, arguments)
    except InvalidArguments as error:
        key, words = next(iter(error.errors.items()))
        line = entry.lines.get(key, entry.line)
        raise PlanError(f"line {line}: {place}: {key or action}: {' '.join(words)}") from error
    except (ActionRefused, ActionUnavailable) as error:
        raise PlanError(f"line {entry.line}: {place}: {error}") from error
