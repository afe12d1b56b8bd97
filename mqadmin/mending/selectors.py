"""The mended copy of a dead letter for pages and REST: what it changes, as the role may see it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from mqadmin.deadletters.bodies import Body, BodyKind, shown
from mqadmin.deadletters.models import DeadLetter, MendedCopy
from mqadmin.mending.differences import BodyDiff, PropertyDiff, body_diff, property_diff
from mqadmin.mending.editable_properties import editable
from mqadmin.mending.originals import is_hidden
from mqadmin.people.roles import Role


@dataclass(frozen=True, slots=True)
class MendedView:
    """A mended copy; `properties` are all that it is sent with. `body_diff` is None where the body is hidden."""

    by: str
    at: datetime
    version: int
    body: Body
    properties: dict[str, str]
    body_diff: BodyDiff | None
    property_diff: tuple[PropertyDiff, ...]


def mended_view(dead: DeadLetter, role: Role | None) -> MendedView | None:
    """Returns the mended copy, None where there is none. The original was kept when it was mended."""
    row = MendedCopy.objects.filter(pk=dead.pk).first()
    if row is None:
        return None
    body, original = bytes(row.body), dead.kept.body
    hidden = is_hidden(role, dead)
    return MendedView(
        by=row.mended_by,
        at=row.mended_at,
        version=row.version,
        body=Body(BodyKind.MASKED) if hidden else shown(body),
        properties=row.properties,
        body_diff=None if hidden else body_diff(bytes(original or b""), body),
        property_diff=property_diff(editable(dead.kept.properties), editable(row.properties)),
    )
