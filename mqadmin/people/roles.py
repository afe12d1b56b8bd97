"""The roles, and the lowest one that has each permission. Pure: the table is the rule.

A permission that is not in the table belongs to no role. `sync_groups` makes Django's groups say the same, so that
everything that asks Django gets the same answer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum


class Role(StrEnum):
    """What somebody may do: look; change what can be changed back; do everything. Each includes the one before."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"


_RANKS = {role: rank for rank, role in enumerate(Role)}

LOWEST_ROLE: Mapping[str, Role] = {
    "mq_clusters.view_cluster": Role.VIEWER,
    "mq_audit.view_auditentry": Role.OPERATOR,
    "mq_clusters.add_topic": Role.OPERATOR,
    "mq_clusters.change_topic": Role.OPERATOR,
    "mq_clusters.add_group": Role.OPERATOR,
    "mq_clusters.change_group": Role.OPERATOR,
    "mq_clusters.change_queueoffset": Role.OPERATOR,
    "mq_consumer.change_hostedgroup": Role.OPERATOR,
    "mq_consumer.view_loopsworker": Role.OPERATOR,
    "mq_consumer.change_loopsworker": Role.OPERATOR,
    "mq_consumer.view_outboxmessage": Role.OPERATOR,
    "mq_consumer.change_outboxmessage": Role.OPERATOR,
    "mq_ownership.change_ownership": Role.OPERATOR,
    "mq_objectives.change_objective": Role.OPERATOR,
    "mq_deadletters.change_failure": Role.OPERATOR,
    "mq_deadletters.change_deadletter": Role.OPERATOR,
    "mq_deadletters.change_mendedcopy": Role.OPERATOR,
    "mq_replays.add_replayjob": Role.OPERATOR,
    "mq_replays.change_replayjob": Role.OPERATOR,
    "mq_deadletter_rules.add_deadletterrule": Role.OPERATOR,
    "mq_deadletter_rules.change_deadletterrule": Role.OPERATOR,
    "mq_deadletter_rules.delete_deadletterrule": Role.OPERATOR,
    "mq_reports.add_reportrun": Role.OPERATOR,
    "mq_alerts.change_alert": Role.OPERATOR,
    "mq_alerts.add_alertsilence": Role.OPERATOR,
    "mq_alerts.delete_alertsilence": Role.OPERATOR,
    "mq_alerts.change_alertrule": Role.OPERATOR,
    "mq_alerts.delete_alertrule": Role.OPERATOR,
    "mq_alerts.view_alertchannel": Role.OPERATOR,
    "mq_alerts.change_alertchannel": Role.ADMIN,
    "mq_reports.change_mailrecipients": Role.ADMIN,
    "mq_alerts.delete_alertchannel": Role.ADMIN,
    "mq_clusters.delete_topic": Role.ADMIN,
    "mq_clusters.delete_group": Role.ADMIN,
    "mq_clusters.change_broker": Role.ADMIN,
    "mq_clusters.delete_broker": Role.ADMIN,
    "mq_clusters.add_cluster": Role.ADMIN,
    "mq_clusters.change_cluster": Role.ADMIN,
    "mq_clusters.delete_cluster": Role.ADMIN,
    "mq_audit.delete_auditentry": Role.ADMIN,
    "auth.view_user": Role.ADMIN,
    "auth.add_user": Role.ADMIN,
    "auth.change_user": Role.ADMIN,
    "auth.delete_user": Role.ADMIN,
    "mq_tokens.add_apitoken": Role.ADMIN,
    "mq_tokens.delete_apitoken": Role.ADMIN,
    "django_celery_beat.view_periodictask": Role.OPERATOR,
    "django_celery_beat.add_periodictask": Role.ADMIN,
    "django_celery_beat.change_periodictask": Role.ADMIN,
    "django_celery_beat.delete_periodictask": Role.ADMIN,
}


def grants(role: str, permission: str) -> bool:
    """Returns whether a role has a permission; False for a name that is no role or no permission of the table."""
    needed = LOWEST_ROLE.get(permission)
    return needed is not None and role in _RANKS and _RANKS[Role(role)] >= _RANKS[needed]


def permissions_of(role: Role) -> frozenset[str]:
    """Returns all permissions of a role."""
    return frozenset(permission for permission in LOWEST_ROLE if grants(role, permission))


def highest(roles: frozenset[Role]) -> Role | None:
    """Returns the role that includes all others; None of none."""
    return max(roles, key=_RANKS.__getitem__, default=None)


def lowest(roles: Collection[Role]) -> Role:
    """Returns the role that all others include. Raises ValueError of none."""
    return min(roles, key=_RANKS.__getitem__)
