"""Rows that one worker at a time has, until a moment that stands in the row: that of a killed worker ends by itself."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q


def is_free(now: datetime, column: str = "claimed_until") -> Q:
    """Returns the condition that no worker has the row now, for the conditional update that claims it."""
    return Q(**{column: None}) | Q(**{f"{column}__lte": now})
