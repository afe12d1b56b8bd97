"""Which replays a second person must approve (MQADMIN_REPLAY_APPROVAL), and what none has looked at.

A selection is judged by group, failure and picks alone: by a text or a time it may hold fewer mended copies, and then
one approval too many is asked for, never one too few.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from mqadmin.actions.declaration import ActionRefused
from mqadmin.clusters.models import Cluster
from mqadmin.deadletters.models import MendedCopy
from mqadmin.replay_files.models import FileMessage, ReplayFile
from mqadmin.replay_files.selectors import of_group
from mqadmin.replays.models import ReplayJob

OFF = "off"


def is_needed(cluster: Cluster, group: str, selection: Mapping[str, Any]) -> bool:
    """Returns whether a replay of the selection waits for a second person."""
    match settings.MQADMIN_REPLAY_APPROVAL:
        case "all":
            return True
        case "mended":
            return _changed_lines(group, selection).exists() or _copies(cluster, group, selection).exists()
        case _:
            return False


def require_another(job: ReplayJob, person: str) -> None:
    """Raises ActionRefused for whoever started the replay, or mended something that it would send."""
    if person == job.started_by:
        raise ActionRefused(_("You started it: another person has to approve it."))
    if _files(job.selection).filter(sent_by=person).exists():
        raise ActionRefused(_("You sent the file: another person has to approve it."))
    if _copies(job.cluster, job.group_name, job.selection).filter(mended_by=person).exists():
        raise ActionRefused(_("You mended something that it would send: another person has to approve it."))


def mended_since(job: ReplayJob, dead_letter_ids: Collection[int | None]) -> set[int]:
    """Returns those that were mended after the approval, or after the start where none was needed then."""
    if settings.MQADMIN_REPLAY_APPROVAL == OFF:
        return set()
    looked_at = job.approved_at or job.created_at
    later = MendedCopy.objects.filter(pk__in=[one for one in dead_letter_ids if one], mended_at__gt=looked_at)
    return set(later.values_list("pk", flat=True))


def _copies(cluster: Cluster, group: str, selection: Mapping[str, Any]) -> QuerySet[MendedCopy]:
    copies = MendedCopy.objects.filter(dead_letter__cluster=cluster, dead_letter__group_name=group)
    if "failure" in selection:
        copies = copies.filter(dead_letter__failure=selection["failure"])
    if "ids" in selection:
        copies = copies.filter(pk__in=selection["ids"])
    if "file" in selection:
        lines = of_group(selection["file"], group).filter(has_body=False, dead_letter__isnull=False)
        copies = copies.filter(pk__in=lines.values("dead_letter"))
    return copies


def _files(selection: Mapping[str, Any]) -> QuerySet[ReplayFile]:
    return ReplayFile.objects.filter(pk=selection["file"]) if "file" in selection else ReplayFile.objects.none()


def _changed_lines(group: str, selection: Mapping[str, Any]) -> QuerySet[FileMessage]:
    """Returns the lines of a file that are not known to be as the index has them: somebody wrote them."""
    if "file" not in selection:
        return FileMessage.objects.none()
    return of_group(selection["file"], group).filter(is_changed=True, problem="")
