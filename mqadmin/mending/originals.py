"""What a dead letter carries now: its original, and the mended copy where there is one; and who may see it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.utils.translation import gettext as _

from mqadmin.actions.declaration import ActionRefused, Change
from mqadmin.clusters.models import Cluster
from mqadmin.deadletters.bodies import ask_broker
from mqadmin.deadletters.models import DeadLetter, KeptMessage, MendedCopy
from mqadmin.mending.editable_properties import editable
from mqadmin.people.current_caller import current_caller
from mqadmin.people.masking import is_masked
from mqadmin.people.roles import Role
from remoting.wire.names import dlq_topic


@dataclass(frozen=True, slots=True)
class Content:
    """A plain body and the properties that may be edited."""

    body: bytes
    properties: dict[str, str]


@dataclass(frozen=True, slots=True)
class Mending:
    """A dead letter's original content and its mended copy; `version` 0: it was never mended."""

    original: Content
    copy: Content | None
    version: int
    by: str = ""
    at: datetime | None = None

    @property
    def present(self) -> Content:
        """Returns what a replay would send now."""
        return self.copy or self.original


class NotToBeHad(Exception):
    """The original body is neither kept nor on its broker; the text says why."""


def mending_of(dead: DeadLetter) -> Mending:
    """Returns the original and the copy; the broker is asked for a body that was too large to be kept.

    Raises NotToBeHad.
    """
    body = plain_body(dead)
    original = Content(body, editable(dead.kept.properties))
    row: MendedCopy | None = getattr(dead, "mended", None)
    if row is None:
        return Mending(original, None, 0)
    return Mending(
        original, Content(bytes(row.body), editable(row.properties)), row.version, row.mended_by, row.mended_at
    )


def plain_body(dead: DeadLetter) -> bytes:
    """Returns the original body. Raises NotToBeHad."""
    if dead.kept.body is not None:
        return bytes(dead.kept.body)
    body, note = ask_broker(dead)
    if body is None:
        raise NotToBeHad(note)
    return body


def keep_original(dead: DeadLetter, body: bytes) -> None:
    """Keeps a body that was too large for the index: the copy is nothing without its original."""
    KeptMessage.objects.filter(pk=dead.pk, body=None).update(body=body)


def require_sight(cluster: Cluster, dead: DeadLetter) -> None:
    """Raises ActionRefused where who asks may not see the body: they would learn it by mending it."""
    if is_hidden(current_caller().role_on(cluster), dead):
        raise ActionRefused(_("Bodies of this topic are hidden from your role: who may not see one may not mend it."))


def is_hidden(role: Role | None, dead: DeadLetter) -> bool:
    """Returns whether the role may not see the body."""
    return is_masked(settings.MQADMIN_MASKED, role, {dead.origin_topic, dlq_topic(dead.group_name)})


def change_between(item: str, before: Content, after: Content) -> Change:
    """Returns the change as previews and the audit have it: sizes of bodies, and the properties that differ."""
    names = sorted(
        name
        for name in before.properties.keys() | after.properties.keys()
        if before.properties.get(name) != after.properties.get(name)
    )
    was: dict[str, object] = {"body_bytes": len(before.body), "is_body_mended": False}
    becomes: dict[str, object] = {"body_bytes": len(after.body), "is_body_mended": before.body != after.body}
    if names:
        was["properties"] = {name: before.properties[name] for name in names if name in before.properties}
        becomes["properties"] = {name: after.properties[name] for name in names if name in after.properties}
    return Change(item, was, becomes)
