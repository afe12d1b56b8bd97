"""Finds the dead letters that the lines of a file are, and whether somebody has changed them since.

A line is a dead letter of the index where group, message id and the broker's id are the same. What the system wrote
into it must be as it was; the rest may have been changed, and then it is another message than the sender's. A line that
is no dead letter of the index counts as changed: nobody can say that it was not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext_noop

from mqadmin.clusters.models import Cluster
from mqadmin.deadletters.models import DeadLetter, KeptMessage
from mqadmin.mending.editable_properties import is_locked
from mqadmin.mending.typed_bodies import BodyKind, WrongBody, checked_json, kind_of
from mqadmin.replay_files.lines import Line, WrongLine
from mqadmin.replay_files.models import FileMessage

# Bodies up to this are read together, larger ones one by one.
SMALL_BODY_BYTES = 64 * 1024

Identity = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Known:
    """Of the lines of one chunk: the dead letters that they are, and what is kept of those with small bodies."""

    dead: Mapping[Identity, DeadLetter]
    kept: Mapping[int, KeptMessage]

    def kept_of(self, dead: DeadLetter) -> KeptMessage:
        return self.kept.get(dead.pk) or KeptMessage.objects.get(pk=dead.pk)


def known_to_index(cluster: Cluster, lines: Iterable[Line]) -> Known:
    """Returns what the index has of the lines, in two queries."""
    wanted = {identity_of(line): line for line in lines if line.message_id}
    ids = {message_id for _, message_id, _ in wanted}
    rows = DeadLetter.objects.filter(cluster=cluster, message_id__in=ids).order_by("pk")
    found = {(row.group_name, row.message_id, row.offset_message_id): row for row in rows}
    dead = {identity: row for identity, row in found.items() if identity in wanted}
    small = [row.pk for row in dead.values() if row.body_bytes <= SMALL_BODY_BYTES]
    return Known(dead, KeptMessage.objects.in_bulk(small))


def identity_of(line: Line) -> Identity:
    return line.group, line.message_id, line.offset_message_id


def message_of(line: Line, known: Known) -> FileMessage:
    """Returns the row of a line, without its file and number. Raises WrongLine."""
    dead = known.dead.get(identity_of(line))
    if dead is None:
        if line.body is None:
            raise WrongLine(gettext_noop("its body is not in the file, and the index has no such dead letter"))
        return _row(line, line.origin_topic, is_changed=True)
    if line.origin_topic not in ("", dead.origin_topic):
        words = gettext_noop("its origin_topic is not that of the dead letter, which is %(topic)s")
        raise WrongLine(words % {"topic": dead.origin_topic or "–"})
    kept = known.kept_of(dead)
    _check_locked(kept.properties, line.properties)
    is_same = kept.properties == line.properties
    if line.body is None:
        if not is_same:
            raise WrongLine(gettext_noop("its properties were changed, and its body is not in the file"))
        return _row(line, dead.origin_topic, dead=dead)
    original = None if kept.body is None else bytes(kept.body)
    is_changed = not is_same or original != line.body
    if original is not None and original != line.body and kind_of(original) == BodyKind.JSON:
        try:
            checked_json(line.body)
        except WrongBody as error:
            raise WrongLine(gettext_noop("its body was JSON, and is none any more")) from error
    return _row(line, dead.origin_topic, dead=dead, is_changed=is_changed)


def _row(line: Line, origin_topic: str, *, dead: DeadLetter | None = None, is_changed: bool = False) -> FileMessage:
    return FileMessage(
        group_name=line.group,
        message_id=line.message_id,
        origin_topic=origin_topic,
        dead_letter=dead,
        is_changed=is_changed,
        has_body=line.body is not None,
        body_bytes=len(line.body or b""),
        properties=line.properties,
        body=line.body,
    )


def _check_locked(original: Mapping[str, str], wanted: Mapping[str, str]) -> None:
    differs: Sequence[str] = sorted(
        name for name in original.keys() | wanted.keys() if is_locked(name) and original.get(name) != wanted.get(name)
    )
    if differs:
        words = gettext_noop("%(name)s is a property of the system, and was changed")
        raise WrongLine(words % {"name": differs[0][:100]})
