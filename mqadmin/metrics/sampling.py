"""Asks brokers and members what they tell of their run, once a minute, of clusters that answer.

Each broker is asked three questions of its own figures and those of `asking.py`; clusters one after another, a
cluster's brokers at once. A broker that does not answer keeps its row as it was; `/metrics` leaves out rows that are
older than three samples.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime

from mqadmin.clusters.models import Broker, Cluster, ClusterState, Member
from mqadmin.metrics import asking
from mqadmin.metrics.models import FRESH_FOR, BrokerRuntime, MemberFigures
from mqadmin.observing import costs
from mqadmin.observing.gateway import Costs, Failures, Gateway, GatewayError, MemberStatus, Runtime, StatsKey, ask

logger = logging.getLogger(__name__)

_Rates = Mapping[tuple[str, StatsKey], float]
# Address, group, client id.
_MemberKey = tuple[str, str, str]
_ASKED = (ClusterState.REACHABLE, ClusterState.PARTIAL)


def sample_all(now: datetime) -> int:
    """Returns how many brokers answered."""
    return sum(_sample(cluster, now) for cluster in Cluster.objects.filter(state__in=_ASKED))


def _sample(cluster: Cluster, now: datetime) -> int:
    brokers = {broker.address: broker for broker in Broker.objects.filter(cluster=cluster)}
    masters = {broker.name: address for address, broker in brokers.items() if broker.broker_id == 0}
    wanted = [
        (address, key) for name, address in masters.items() for key in asking.statistics(cluster, brokers[address])
    ]
    members = {(address, one.group.name, one.client_id): one for address, one in asking.members(cluster, masters)}
    failures, spent = Failures(), Costs()

    async def questions(gateway: Gateway) -> tuple[dict[str, Runtime], _Rates, Mapping[_MemberKey, MemberStatus]]:
        runtimes = await gateway.runtimes(brokers, cluster.rocketmq_name, failures)
        rates = await gateway.rates(wanted, failures)
        return runtimes, rates, await gateway.member_statuses(members, failures)

    try:
        runtimes, rates, statuses = ask(cluster.namesrv, questions, spent)
    except GatewayError as error:
        logger.info("cluster %s: its brokers' figures were not read: %s", cluster.name, error)
        return 0
    finally:
        costs.write(cluster, spent.take(), now)
    for address, runtime in runtimes.items():
        fields = {
            "figures": runtime.figures,
            "put_per_s": runtime.put_per_s,
            "get_per_s": runtime.get_per_s,
            "topic_rates": _by_key(rates, address, asking.TOPIC_STATISTICS),
            "group_rates": _by_key(rates, address, asking.GROUP_STATISTICS),
            "seen_at": now,
        }
        BrokerRuntime.objects.update_or_create(broker=brokers[address], defaults=fields)
    for key, status in statuses.items():
        if Member.objects.filter(pk=members[key].pk).exists():
            told = {"statuses": status.statuses, "suspended": status.suspended, "seen_at": now}
            MemberFigures.objects.update_or_create(member=members[key], defaults=told)
    MemberFigures.objects.filter(member__group__cluster=cluster, seen_at__lt=now - FRESH_FOR).delete()
    return len(runtimes)


def _by_key(rates: _Rates, address: str, names: tuple[str, ...]) -> dict[str, dict[str, float]]:
    found: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for (asked, statistic), number in rates.items():
        if asked == address and statistic.name in names:
            found[statistic.key][statistic.name] = number
    return dict(found)
