"""Whether a replay to a topic of choice would show bodies to somebody from whom they are hidden.

The start refuses what it finds in the selection; of very many it looks at the first alone, so every entry is judged
again when it is claimed, by the role that the selection keeps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.conf import settings

from mqadmin.clusters.models import Cluster
from mqadmin.clusters.selectors.newest_rows import NewestRows
from mqadmin.deadletters.masked_rows import with_hidden_body
from mqadmin.deadletters.models import DeadLetter
from mqadmin.deadletters.selection import counted, selected
from mqadmin.people.masking import is_masked
from mqadmin.people.roles import Role
from mqadmin.replay_files.selectors import of_group
from mqadmin.replays.models import ReplayEntry, ReplayJob
from mqadmin.replays.states import Target
from remoting.wire.names import dlq_topic


def has_hidden(cluster: Cluster, group: str, selection: Mapping[str, Any], *, until_id: int, role: Role | None) -> bool:
    """Returns whether the role may not see a body of the selection: of very many, of the first of them."""
    rules = settings.MQADMIN_MASKED
    if "file" in selection:
        lines = of_group(selection["file"], group).filter(problem="")
        dead = DeadLetter.objects.filter(pk__in=lines.filter(dead_letter__isnull=False).values("dead_letter"))
        return with_hidden_body(lines, rules, role).exists() or with_hidden_body(dead, rules, role).exists()
    found = selected(cluster, group, selection, until_id=until_id)
    if isinstance(found, NewestRows):
        first, _ = counted(found)
        return with_hidden_body(first, rules, role).exists()
    return bool(replace(found, rows=with_hidden_body(found.rows, rules, role)).look(None, 1).rows)


def is_hidden(job: ReplayJob, entry: ReplayEntry) -> bool:
    """Returns whether the body is hidden from who started the replay, and would not be where it goes."""
    if job.target != Target.TOPIC or "role" not in job.selection:
        return False
    rules, role = settings.MQADMIN_MASKED, Role(job.selection["role"])
    topics = {dlq_topic(job.group_name), entry.origin_topic}
    if entry.dead_letter is not None:
        topics.add(entry.dead_letter.origin_topic)
    return is_masked(rules, role, topics) and not is_masked(rules, role, {job.target_topic})
