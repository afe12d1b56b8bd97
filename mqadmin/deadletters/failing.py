"""What messages of a group fail of before they are dead: as the runtime keeps it, and as members tell it.

The runtime's table (`mq_consumer_failure`) has the latest failure of each message that this project's listeners failed
on. Members in other projects tell theirs in their running info: they are asked for while somebody waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from consumer.conf import cluster_behind
from consumer.models import MessageFailure
from mqadmin.clusters.models import Cluster, Member
from mqadmin.clusters.relays import relay_of
from mqadmin.clusters.selectors.newest_rows import NewestRows
from mqadmin.observing.gateway import Failures, GatewayError, MemberStatus, ask

# Of a group, by name: a broker relays each question.
MEMBERS_ASKED_MAX = 20
# All answers: a person waits for the page.
ASK_TIMEOUT_S = 6.0


@dataclass(frozen=True, slots=True)
class StatusAnswer:
    """`status` is None where the member did not answer."""

    member: Member
    status: MemberStatus | None


@dataclass(frozen=True, slots=True)
class StatusAnswers:
    """The first MEMBERS_ASKED_MAX of `total_count` members. `failures`: address → why it did not answer."""

    members: tuple[StatusAnswer, ...]
    total_count: int
    failures: dict[str, str]


def message_failures(cluster: Cluster, group: str) -> NewestRows[MessageFailure]:
    """Returns the latest failure of each message of a group that this project's listeners failed on."""
    name = cluster_behind(cluster.namesrv)
    rows = MessageFailure.objects.all()
    return NewestRows(rows.filter(cluster=name, group=group) if name is not None else rows.none(), "failed_at")


def reasons(cluster: Cluster, group: str, message_ids: Iterable[str]) -> dict[str, MessageFailure]:
    """Returns the latest failures of these messages, by their unique keys."""
    found = message_failures(cluster, group).rows.filter(message_id__in=set(message_ids))
    return {one.message_id: one for one in found}


def members_told(cluster: Cluster, group: str, members: Sequence[Member]) -> StatusAnswers:
    """Asks members of a group, within ASK_TIMEOUT_S, whether they are suspended and what failed there last."""
    masters = dict(cluster.brokers.filter(broker_id=0).order_by("name").values_list("name", "address"))
    asked = members[:MEMBERS_ASKED_MAX]
    keys = {
        member.pk: (address, group, member.client_id)
        for member in asked
        if (address := relay_of(member, masters)) is not None
    }
    failures = Failures()
    try:
        statuses = ask(
            cluster.namesrv,
            lambda gateway: gateway.member_statuses(keys.values(), failures, timeout_s=ASK_TIMEOUT_S),
        )
    except GatewayError as error:
        statuses, failures = {}, Failures({cluster.namesrv: str(error)})
    told = tuple(StatusAnswer(one, statuses.get(keys[one.pk]) if one.pk in keys else None) for one in asked)
    return StatusAnswers(told, len(members), dict(failures.reasons))
