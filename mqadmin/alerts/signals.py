"""What alerts publish: Django signals, sent with one `event` within the transaction that wrote the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.dispatch import Signal

# Alerts fired, resolved, were silenced or acknowledged; or something was told. → AlertsChanged
alerts_changed = Signal()
# What became of alerts, one by one. → AlertsTurned
alerts_turned = Signal()


@dataclass(frozen=True, slots=True)
class AlertsChanged:
    """`groups`: names of the consumer groups that they are about, of this cluster."""

    cluster: str
    groups: Sequence[str] = ()


class AlertTurning(StrEnum):
    """What became of an alert. TAKEN_BACK: nobody looks after it any more."""

    FIRED = "fired"
    ACKNOWLEDGED = "acknowledged"
    TAKEN_BACK = "taken_back"
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnedAlert:
    """An alert as it is now; its row may be gone. `name`: of the group or broker, "" where it is about the cluster.

    `by`: who acknowledged it, or took that back. `is_silenced`: nobody is told of it by the rule's channels.
    """

    id: int
    turning: AlertTurning
    rule: str
    about: str
    subject: str
    name: str
    at: datetime
    since: datetime
    is_silenced: bool
    reading: Mapping[str, Any]
    by: str = ""


@dataclass(frozen=True, slots=True)
class AlertsTurned:
    """`turned`: of this cluster, in the order in which they began."""

    cluster: str
    turned: Sequence[TurnedAlert]
