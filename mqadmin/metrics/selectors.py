"""Reads what brokers last told of their run."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from mqadmin.clusters.models import Broker, Group
from mqadmin.metrics.models import FRESH_FOR, BrokerRuntime, MemberFigures

# On a group's page; the tab "Failures" has all that were asked.
SUSPENDED_MAX = 5


def runtimes(brokers: Iterable[Broker]) -> dict[int, BrokerRuntime]:
    """Returns the last figures by the broker's primary key; a broker that told nothing yet is absent."""
    return {row.broker_id: row for row in BrokerRuntime.objects.filter(broker__in=list(brokers))}


def suspended_members(group: Group, now: datetime) -> list[MemberFigures]:
    """Returns what the online members of a group last told that consume nothing now, by client id."""
    told = MemberFigures.objects.filter(member__group=group, member__left_at=None, seen_at__gte=now - FRESH_FOR)
    return list(told.exclude(suspended="").select_related("member").order_by("member__client_id")[:SUSPENDED_MAX])
