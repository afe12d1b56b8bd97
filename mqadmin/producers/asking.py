"""Asks brokers for the producers that are connected to them, and remembers since when each is seen.

All brokers of a cluster are asked once a minute, by one request each; those of a topic when somebody opens its page.

A broker does not know which topics a producer sends to: those of a topic are all that are connected to the brokers
that have it. GET_ALL_PRODUCER_INFO (328) tells them with their last heartbeat; brokers that do not know it answer for
one producer group by its name, GET_PRODUCER_CONNECTION_LIST (204), without the heartbeat.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Max

from mqadmin.clusters.bulk import CHUNK, chunks
from mqadmin.clusters.models import NAME_CHARS_MAX, Cluster, ClusterState, Topic
from mqadmin.clusters.moments import moment_or_none
from mqadmin.clusters.versions import version_name
from mqadmin.observing import costs
from mqadmin.observing.gateway import ConnectedProducer, Costs, Failures, Gateway, GatewayError, ProducersTold, ask
from mqadmin.producers.models import SeenProducer

# All answers: a person waits for the page.
ASK_TIMEOUT_S = 6.0
# More than a page shows with use; by the name of their group the others are found.
PRODUCERS_MAX = 500
# A client of that name which comes back later counts as new.
SEEN_KEPT_FOR = timedelta(days=7)
# Of one cluster, remembered in a round.
REMEMBERED_MAX = 5_000
# Asked for by their names where a broker has no list of producers: those that were seen, the latest first.
GROUPS_BY_NAME_MAX = 20


@dataclass(frozen=True, slots=True)
class Producer:
    """A client of a producer group, with the names of the brokers that have it.

    `heartbeat_at` is the latest that a broker told, None where none tells. `first_seen_at`: when the console was told
    of it for the first time, None for a name too long to be remembered.
    """

    group: str
    client_id: str
    address: str
    language: str
    version_name: str
    heartbeat_at: datetime | None
    brokers: tuple[str, ...]
    first_seen_at: datetime | None


@dataclass(frozen=True, slots=True)
class ProducersAnswer:
    """The first PRODUCERS_MAX of `total_count`, by group and client. `failures`: broker → why it told nothing."""

    producers: tuple[Producer, ...]
    total_count: int
    broker_count: int
    failures: Mapping[str, str]


def producers_of(cluster: Cluster, topic: Topic, group: str, now: datetime) -> ProducersAnswer:
    """Asks the masters that have the topic, within ASK_TIMEOUT_S; `group` "" asks for producers of all groups."""
    names = topic.queues.values_list("broker_name", flat=True).distinct()
    masters = cluster.brokers.filter(broker_id=0)
    addresses = dict((masters.filter(name__in=names) if names else masters).values_list("address", "name"))
    failures = Failures()

    async def call(gateway: Gateway) -> dict[str, list[ConnectedProducer]]:
        return await gateway.clients.producers(addresses, group, failures, timeout_s=ASK_TIMEOUT_S)

    try:
        found = ask(cluster.namesrv, call)
    except GatewayError as error:
        return ProducersAnswer((), 0, len(addresses), dict.fromkeys(addresses.values(), str(error)))
    by_client = _by_client({addresses[address]: told for address, told in found.items()})
    shown = sorted(by_client)[:PRODUCERS_MAX]
    first_seen = _remember(cluster, shown, now)
    return ProducersAnswer(
        tuple(_producer(identity, by_client[identity], first_seen.get(identity)) for identity in shown),
        len(by_client),
        len(addresses),
        {addresses[address]: reason for address, reason in failures.reasons.items()},
    )


def ask_round(cluster: Cluster, now: datetime) -> int:
    """Asks every master of a cluster that answers; returns how many producers are remembered."""
    if cluster.state not in (ClusterState.REACHABLE, ClusterState.PARTIAL):
        return 0
    addresses = list(cluster.brokers.filter(broker_id=0).order_by("name").values_list("address", flat=True))
    groups, spent = seen_groups(cluster), Costs()

    async def call(gateway: Gateway) -> ProducersTold:
        return await gateway.clients.all_producers(addresses, groups, Failures())

    try:
        found = ask(cluster.namesrv, call, spent)
    except GatewayError:
        found = ProducersTold({})  # what the cluster's state says already
    costs.write(cluster, spent.take(), now)
    identities = sorted(_by_client(found.by_broker))[:REMEMBERED_MAX]
    _remember(cluster, identities, now)
    return len(identities)


def seen_groups(cluster: Cluster) -> list[str]:
    """Returns the producer groups that were seen, the latest first, GROUPS_BY_NAME_MAX at most."""
    seen = SeenProducer.objects.filter(cluster=cluster).values("group").annotate(latest=Max("seen_at"))
    return list(seen.order_by("-latest", "group").values_list("group", flat=True)[:GROUPS_BY_NAME_MAX])


_Identity = tuple[str, str]
_Told = dict[str, ConnectedProducer]


def _by_client(found: Mapping[str, Iterable[ConnectedProducer]]) -> dict[_Identity, _Told]:
    """Returns group and client → what each broker told of it."""
    by_client: dict[_Identity, _Told] = {}
    for broker, told in sorted(found.items()):
        for one in told:
            by_client.setdefault((one.group, one.client_id), {})[broker] = one
    return by_client


def _producer(identity: _Identity, told: _Told, first_seen_at: datetime | None) -> Producer:
    latest = max(told.values(), key=lambda one: one.heartbeat_ms)
    return Producer(
        *identity,
        latest.address,
        latest.language,
        version_name(latest.version),
        moment_or_none(latest.heartbeat_ms),
        tuple(told),
        first_seen_at,
    )


def _remember(cluster: Cluster, identities: Sequence[_Identity], now: datetime) -> dict[_Identity, datetime]:
    """Notes that these are there now; returns since when each has been seen. Forgets who has long been gone."""
    SeenProducer.objects.filter(cluster=cluster, seen_at__lt=now - SEEN_KEPT_FOR).delete()
    kept = [one for one in identities if all(map(_is_rememberable, one))]
    SeenProducer.objects.bulk_create(
        [
            SeenProducer(cluster=cluster, group=group, client_id=client_id, first_seen_at=now, seen_at=now)
            for group, client_id in kept
        ],
        update_conflicts=True,
        unique_fields=["cluster", "group", "client_id"],
        update_fields=["seen_at"],
        batch_size=CHUNK,
    )
    rows = (
        SeenProducer.objects.filter(cluster=cluster, client_id__in=client_ids)
        for client_ids in chunks({client_id for _group, client_id in kept})
    )
    return {(row.group, row.client_id): row.first_seen_at for found in rows for row in found}


def _is_rememberable(name: str) -> bool:
    return len(name) <= NAME_CHARS_MAX and "\0" not in name
