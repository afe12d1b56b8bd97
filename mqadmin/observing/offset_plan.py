"""A group's progress and its rows to changes of the rows. Pure, as `plan.py`; rows come as tuples: there are many."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from mqadmin.clusters.models import WaitingMethod
from mqadmin.observing.observation import CommitObserved, Owner
from remoting.wire.bodies.message_queue import MessageQueue


@dataclass(frozen=True, slots=True)
class GroupProgress:
    """All that bears on one group's rows of progress. None: not known; of `owners`: not reported this time.

    `broker`: whose queues `owners` is about; "" where it is about all.
    """

    group_id: int
    committed: Mapping[MessageQueue, CommitObserved] = field(default_factory=dict)
    subscribed_topics: frozenset[str] | None = None
    owners: Mapping[MessageQueue, Owner] | None = None
    broker: str = ""


class OffsetRow(NamedTuple):
    """A group's row of progress on one queue: what an observation may find changed. `pk` None: there is none yet."""

    topic_name: str
    broker_name: str
    queue_id: int
    pk: int | None
    committed_offset: int | None = None
    behind_since: datetime | None = None
    behind_method: str = WaitingMethod.NONE.value
    is_subscribed: bool | None = None
    owner: str | None = None
    owner_since: datetime | None = None
    last_pull_at: datetime | None = None
    rewound_from: int | None = None


class OffsetChange(NamedTuple):
    """New values of a row, by the field's name."""

    row: OffsetRow
    values: dict[str, Any]


def queue_offsets(
    progress: GroupProgress, rows: Collection[OffsetRow], queues: Iterable[MessageQueue], at: datetime
) -> list[OffsetChange]:
    """Returns what changes, new rows for what is committed or pulled and for each of `queues` that is subscribed.

    How far a queue reaches is none of their business: a topic that grows changes no row of its readers.
    """
    changes = [OffsetChange(row, values) for row in rows if (values := _advance(row, progress))]
    known = {row[:3] for row in rows}
    wanted = {queue for queue in (*progress.committed, *(progress.owners or ())) if queue not in known}
    if progress.subscribed_topics:
        wanted |= {queue for queue in queues if queue.topic in progress.subscribed_topics and queue not in known}
    for queue in wanted:
        row = OffsetRow(queue.topic, queue.broker_name, queue.queue_id, None)
        changes.append(OffsetChange(row, _advance(row, progress)))
    for row, values in changes:
        if "committed_offset" in values:
            values["committed_since"] = at
            if row.committed_offset is not None:
                values["moved_at"] = at
        values["seen_at"] = at
    return changes


def _advance(row: OffsetRow, progress: GroupProgress) -> dict[str, Any]:
    """Returns the values of the observation that the row does not have."""
    queue: Any = row[:3]  # a queue is equal to its three parts
    values: dict[str, Any] = {}
    committed = progress.committed.get(queue)
    if committed is not None:
        is_moved = committed.committed_offset != row.committed_offset
        if is_moved:
            values["committed_offset"] = committed.committed_offset
            rewound_from = _rewound_from(row, committed.committed_offset)
            if rewound_from != row.rewound_from:
                values["rewound_from"] = rewound_from
        if is_moved or committed.behind_since is not None:
            is_told = committed.behind_since is not None
            method = WaitingMethod.STORE_TIME if is_told else WaitingMethod.NONE
            if (committed.behind_since, method) != (row.behind_since, row.behind_method):
                values["behind_since"], values["behind_method"] = committed.behind_since, method
    if progress.subscribed_topics is not None:
        is_subscribed = row.topic_name in progress.subscribed_topics
        if is_subscribed != row.is_subscribed:
            values["is_subscribed"] = is_subscribed
    if progress.owners is not None and progress.broker in ("", row.broker_name):
        owner = progress.owners.get(queue)
        told = (owner.client_id, owner.since, owner.last_pull_at) if owner else ("", None, None)
        if told != (row.owner, row.owner_since, row.last_pull_at):
            values["owner"], values["owner_since"], values["last_pull_at"] = told
    return values


def _rewound_from(row: OffsetRow, committed_offset: int) -> int | None:
    """Returns where the committed offset was before it was moved back; None when it is there again."""
    reached = max(row.committed_offset or 0, row.rewound_from or 0)
    return reached if committed_offset < reached else None
