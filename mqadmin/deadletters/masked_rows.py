"""Which dead letters' bodies a role may search: those that it may see, by the same rules. Pure but for the query."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

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
    patterns = _patterns(rules, role)
    return _with_own_topic(rows).exclude(_hidden(patterns)) if patterns else rows


def with_hidden_body(rows: QuerySet[Any], rules: Sequence[MaskRule], role: Role | None) -> QuerySet[Any]:
    """Returns the others: those whose bodies are hidden from the role. A row has `origin_topic` and `group_name`."""
    if role is None:
        return rows
    patterns = _patterns(rules, role)
    return _with_own_topic(rows).filter(_hidden(patterns)) if patterns else rows.none()


def _patterns(rules: Sequence[MaskRule], role: Role) -> list[str]:
    return [as_regex(rule.pattern) for rule in rules if concerns(rule, role)]


def _hidden(patterns: Iterable[str]) -> Q:
    hidden = Q()
    for pattern in patterns:
        hidden |= Q(origin_topic__regex=pattern) | Q(own_topic__regex=pattern)
    return hidden


def _with_own_topic(rows: QuerySet[Any]) -> QuerySet[Any]:
    named: QuerySet[Any] = rows.alias(own_topic=Concat(Value(DLQ_PREFIX), "group_name"))
    return named


def as_regex(pattern: str) -> str:
    """Returns a pattern of names as databases have it. One with brackets, which they read otherwise, is every name."""
    if "[" in pattern:
        return ""
    signs = {"*": ".*", "?": "."}
    return f"^{''.join(signs.get(sign, re.escape(sign)) for sign in pattern)}$"
