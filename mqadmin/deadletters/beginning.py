"""What changed when a failure began: what was observed and done around a moment, in the order of time.

Rebalances of the group (members that joined, left or were lost, subscriptions that changed, queues that moved), and
audited actions on the group, the topic, or a broker that has its dead letters.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from mqadmin.audit import selectors as audit
from mqadmin.audit.models import AuditEntry
from mqadmin.audit.selectors import AuditFilter
from mqadmin.clusters.models import ID_MAX, Cluster
from mqadmin.clusters.selectors.newest_first import write_cursor
from mqadmin.deadletters.models import DeadLetterQueue, Failure
from mqadmin.rebalances import selectors as rebalances
from mqadmin.rebalances.selectors import RebalanceRow
from remoting.wire.names import dlq_topic

BEFORE = timedelta(minutes=15)
AFTER = timedelta(minutes=5)
# Of each kind; more of them explain nothing.
CHANGES_MAX = 50


@dataclass(frozen=True, slots=True)
class Beginning:
    """What happened between `since` and `until`, each kind oldest first; the failure began at `began_at`.

    `are_rebalances_kept`: those of that time have not been removed for their age, so that none means none.
    """

    cluster: str
    began_at: datetime
    since: datetime
    until: datetime
    rebalances: tuple[RebalanceRow, ...]
    actions: tuple[AuditEntry, ...]
    are_rebalances_kept: bool


def beginning_of(
    cluster: Cluster, failure: Failure, began_at: datetime, now: datetime, *, reads_audit: bool
) -> Beginning:
    """Returns what changed around the moment; of the audit nothing where the viewer may not read it."""
    since, until = began_at - BEFORE, began_at + AFTER
    newest = rebalances.of_group(cluster.pk, failure.group_name, before=write_cursor(until, ID_MAX), size=CHANGES_MAX)
    events = [event for event in newest.rows if event.at >= since]
    actions = _actions(cluster, failure, since, until) if reads_audit else []
    return Beginning(
        cluster=cluster.name,
        began_at=began_at,
        since=since,
        until=until,
        rebalances=tuple(reversed(events)),
        actions=tuple(actions),
        are_rebalances_kept=rebalances.are_kept(since, now),
    )


def _actions(cluster: Cluster, failure: Failure, since: datetime, until: datetime) -> list[AuditEntry]:
    queues = DeadLetterQueue.objects.filter(cluster=cluster, topic_name=dlq_topic(failure.group_name))
    subjects = {failure.group_name, failure.origin_topic, *queues.values_list("broker_name", flat=True)} - {""}
    found = audit.matching(AuditFilter(cluster=cluster.name, since=since, until=until))
    return list(found.filter(subject__in=subjects).order_by("number")[:CHANGES_MAX])
