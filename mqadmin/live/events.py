"""Events for open pages: small messages through the Channels layer that name what changed.

An event carries no figures: the region is rendered again, by the same view and with the same permission check as
before. It is published after the transaction commits, so that whoever renders sees the change. An event that is lost
(no Redis) leaves a page stale until its socket reconnects, or until the next change.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from zlib import crc32

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.db import transaction
from redis.exceptions import RedisError

from mqadmin.live import revisions

logger = logging.getLogger(__name__)

# Read by the listener of each web process (changes.py).
EVENT_TYPE = "live.changed"
# The live group of all scripts' sockets, and the method of `EventSocket` that receives it.
EVENT_FEEDS = "event_feeds"
EVENTS_RECORDED_TYPE = "live.recorded"
# The consumer groups of one cluster share this many live groups, so that ten thousand that change at once cost this
# many messages at most; a page leaves out what is not its own.
GROUP_BUCKETS = 64


class ChangeKind(StrEnum):
    """What changed. GROUP and REBALANCE are published for one consumer group, the others for a cluster.

    DEAD_LETTERS: the index of dead letters, of the cluster or of one group. REPLAYS: a replay began or went on.
    REPORTS: a run of the reports' job. ALERTS: what fires, of a cluster or of one consumer group.
    """

    CLUSTER = "cluster"
    TOPICS = "topics"
    GROUPS = "groups"
    REBALANCES = "rebalances"
    DEAD_LETTERS = "dead_letters"
    REPLAYS = "replays"
    REPORTS = "reports"
    ALERTS = "alerts"
    GROUP = "group"
    REBALANCE = "rebalance"


@dataclass(frozen=True, slots=True)
class Change:
    """One event. `group` "": the cluster itself. A later change of the same thing has a larger `revision`."""

    kind: ChangeKind
    cluster: str
    group: str = ""
    revision: int = 0

    def as_event(self) -> dict[str, object]:
        return {"kind": self.kind, "cluster": self.cluster, "group": self.group, "revision": self.revision}


def live_group(cluster: str, group: str = "") -> str:
    """Returns the name of the Channels group for a cluster or a consumer group.

    A digest, because Channels allows fewer characters than RocketMQ's names have.
    """
    digest = sha256(cluster.encode()).hexdigest()[:32]
    return f"groups.{digest}.{crc32(group.encode()) % GROUP_BUCKETS}" if group else f"cluster.{digest}"


def publish_after_commit(changes: Sequence[Change]) -> None:
    """Sends `changes` when the transaction in progress commits; at once outside one."""
    if changes:
        transaction.on_commit(lambda: publish(changes))


def publish(changes: Sequence[Change]) -> None:
    """Sends `changes` from synchronous code. A Redis that cannot be reached is logged and costs these events."""
    by_live_group: defaultdict[str, list[dict[str, object]]] = defaultdict(list)
    for change in changes:
        by_live_group[live_group(change.cluster, change.group)].append(change.as_event())
    try:
        # First: a page that is notified of a change must not be given a fragment from before it.
        revisions.renew(by_live_group)
        async_to_sync(_send)(by_live_group)
    except (OSError, RedisError) as error:
        logger.warning("%d changes were not sent to the open pages: %s", len(changes), error)


def wake_event_feeds() -> None:
    """Tells the feeds of all web processes that there are new events (`mqadmin/events/`).

    A Redis that cannot be reached is logged: then they find them when they look by themselves.
    """
    try:
        async_to_sync(_wake_event_feeds)()
    except (OSError, RedisError) as error:
        logger.warning("scripts hear of new events a few seconds later: %s", error)


async def _wake_event_feeds() -> None:
    await get_channel_layer().group_send(EVENT_FEEDS, {"type": EVENTS_RECORDED_TYPE})


async def _send(changes_by_live_group: Mapping[str, Sequence[Mapping[str, object]]]) -> None:
    layer = get_channel_layer()
    for name, changes in changes_by_live_group.items():
        await layer.group_send(name, {"type": EVENT_TYPE, "changes": changes})
