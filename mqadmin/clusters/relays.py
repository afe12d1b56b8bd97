"""Which broker relays a question to a member: one that the member is connected to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mqadmin.clusters.models import Member, QueueOffset


def relay_of(member: Member, masters: Mapping[str, str]) -> str | None:
    """Returns its address; None where no broker is known. `masters`: name → address."""
    names = member.known_by or _brokers_of(member)
    return next((masters[name] for name in names if name in masters), next(iter(masters.values()), None))


def _brokers_of(member: Member) -> Iterable[str]:
    return (
        QueueOffset.objects.filter(group=member.group_id)
        .order_by("broker_name")
        .values_list("broker_name", flat=True)[:1]
    )
