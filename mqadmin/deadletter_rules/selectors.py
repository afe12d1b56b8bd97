"""Rules for pages and REST, with what each did last, and the failures that rules have raised."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mqadmin.audit.models import AuditEntry
from mqadmin.clusters.models import Cluster
from mqadmin.deadletter_rules.models import DeadLetterRule, RaisedFailure
from mqadmin.deadletters.models import Failure

# The overview shows the latest; the pages of dead letters have all.
RAISED_MAX = 20


@dataclass(frozen=True, slots=True)
class RuleLine:
    """A rule with the audit entry of what it did last, and the failure that it is about, where it is about one."""

    rule: DeadLetterRule
    last: AuditEntry | None
    failure: Failure | None


def rules(cluster: Cluster) -> list[RuleLine]:
    """Returns the rules of a cluster by name; there are RULES_MAX at most."""
    rows = list(DeadLetterRule.objects.filter(cluster=cluster).order_by("name"))
    runs = [row.last_run for row in rows if row.last_run is not None]
    entries = {entry.run: entry for entry in AuditEntry.objects.filter(run__in=runs)}
    identities = [row.identity for row in rows if row.identity]
    failures = {
        (one.group_name, one.identity): one for one in Failure.objects.filter(cluster=cluster, identity__in=identities)
    }
    return [
        RuleLine(
            row,
            entries.get(row.last_run) if row.last_run is not None else None,
            failures.get((row.group_name, row.identity)),
        )
        for row in rows
    ]


def raised(clusters: Iterable[Cluster]) -> list[RaisedFailure]:
    """Returns the failures that rules have raised and nobody has archived, the latest first."""
    rows = RaisedFailure.objects.filter(failure__cluster__in=list(clusters), failure__archived_at=None)
    return list(rows.select_related("failure__cluster", "rule").order_by("-last_at", "-pk")[:RAISED_MAX])
