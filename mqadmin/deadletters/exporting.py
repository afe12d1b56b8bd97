"""Dead letters with what they carried, for files: few at a time, so that a file of any length costs little memory.

Bodies are those that are kept: a broker is not asked for millions. What is no text is written in Base64.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.conf import settings

from mqadmin.clusters.selectors.newest_rows import Looked, NewestRows
from mqadmin.deadletters.matching_rows import MatchingRows
from mqadmin.deadletters.models import DeadLetter, KeptMessage
from mqadmin.people.masking import is_masked
from mqadmin.people.roles import Role
from remoting.wire.names import dlq_topic


class BodyEncoding(StrEnum):
    """How the body is written; MASKED: it is hidden from who asks; ABSENT: it was too large to be kept."""

    TEXT = "text"
    BASE64 = "base64"
    MASKED = "masked"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class ExportedDeadLetter:
    """A row of a file."""

    cluster: str
    dead: DeadLetter
    properties: dict[str, str]
    body: str
    body_encoding: BodyEncoding


@dataclass(frozen=True, slots=True)
class ExportedRows:
    """The rows of a list with what they carried, as far as the role may see it; positions are the list's."""

    cluster: str
    rows: NewestRows[DeadLetter] | MatchingRows
    role: Role | None

    def after(self, position: Sequence[Any] | None, size: int) -> list[ExportedDeadLetter]:
        """Returns at most `size` rows behind the position, None for the first ones."""
        return self._with_kept(self.rows.after(position, size))

    def look(self, position: Sequence[Any] | None, size: int) -> Looked[ExportedDeadLetter]:
        """Returns what a bounded look finds behind the position, and where to go on."""
        looked = self.rows.look(position, size)
        return Looked(self._with_kept(looked.rows), looked.place)

    def position(self, row: ExportedDeadLetter) -> list[object]:
        """Returns the position of a row, as plain JSON."""
        return self.rows.position(row.dead)

    def total_count(self) -> None:
        """Not counted: there may be millions."""

    def _with_kept(self, found: Sequence[DeadLetter]) -> list[ExportedDeadLetter]:
        kept = KeptMessage.objects.in_bulk([row.pk for row in found])
        return [self._exported(row, kept[row.pk]) for row in found]

    def _exported(self, dead: DeadLetter, kept: KeptMessage) -> ExportedDeadLetter:
        if is_masked(settings.MQADMIN_MASKED, self.role, {dead.origin_topic, dlq_topic(dead.group_name)}):
            return ExportedDeadLetter(self.cluster, dead, kept.properties, "", BodyEncoding.MASKED)
        body = None if kept.body is None else bytes(kept.body)
        return ExportedDeadLetter(self.cluster, dead, kept.properties, *written(body))


def written(body: bytes | None) -> tuple[str, BodyEncoding]:
    """Returns a plain body as text, and how it is written."""
    if body is None:
        return "", BodyEncoding.ABSENT
    try:
        return body.decode(), BodyEncoding.TEXT
    except UnicodeDecodeError:
        return b64encode(body).decode(), BodyEncoding.BASE64
