"""Which dead letters of a group a replay is about, as plain JSON that the job keeps.

{"failure": 12, "text": "paid", "since": "2026-01-31T08:00:00+00:00"}   what the list shows with this filter
{"ids": [3, 4]}                                                         these
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from mqadmin.clusters.models import Cluster
from mqadmin.deadletters.matching_rows import MatchingRows
from mqadmin.deadletters.models import IDENTITY_CHARS, DeadLetter
from mqadmin.deadletters.newest_rows import NewestRows
from mqadmin.deadletters.selectors import DeadLetterFilter, dead_letters

Selected = NewestRows[DeadLetter] | MatchingRows

# Picked one by one.
IDS_MAX = 1000


def selected(cluster: Cluster, group: str, selection: Mapping[str, Any], *, until_id: int) -> Selected:
    """Returns the dead letters of the selection that were indexed as `until_id` or before, in the order of the list."""
    wanted = DeadLetterFilter(
        group=group,
        failure_id=selection.get("failure"),
        text=selection.get("text", ""),
        since=_moment(selection.get("since")),
        until=_moment(selection.get("until")),
    )
    found = dead_letters(cluster, wanted)
    rows = found.rows.filter(pk__lte=until_id)
    if "ids" in selection:
        rows = rows.filter(pk__in=selection["ids"])
    return replace(found, rows=rows)


def identity_of(group: str, selection: Mapping[str, Any], target: str, target_topic: str) -> str:
    """Returns the digest that replays have in common which send the same to the same."""
    text = json.dumps([group, selection, target, target_topic], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:IDENTITY_CHARS]


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
