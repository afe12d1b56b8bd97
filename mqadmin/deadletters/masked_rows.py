"""Which dead letters' bodies a role may search: those that it may see, by the same rules. Pure but for the query."""

from __future__ import annotations

import re
from collections.abc import Sequence

from django.db.models import Q, QuerySet, Value
from django.db.models.functions import Concat

from mqadmin.deadletters.models import DeadLetter
from mqadmin.people.masking import MaskRule, concerns
from mqadmin.people.roles import Role
from remoting.wire.names import DLQ_PREFIX


def with_readable_body(
    rows: QuerySet[DeadLetter], rules: Sequence[MaskRule], role: Role | None
) -> QuerySet[DeadLetter]:
    """Returns the rows whose bodies are not hidden from the role; nobody's role sees none."""
    if role is None:
        return rows.none()
    patterns = [as_regex(rule.pattern) for rule in rules if concerns(rule, role)]
    if not patterns:
        return rows
    hidden = Q()
    for pattern in patterns:
        hidden |= Q(origin_topic__regex=pattern) | Q(own_topic__regex=pattern)
    return rows.alias(own_topic=Concat(Value(DLQ_PREFIX), "group_name")).exclude(hidden)


def as_regex(pattern: str) -> str:
    """Returns a pattern of names as databases have it. One with brackets, which they read otherwise, is every name."""
    if "[" in pattern:
        return ""
    signs = {"*": ".*", "?": "."}
    return f"^{''.join(signs.get(sign, re.escape(sign)) for sign in pattern)}$"
