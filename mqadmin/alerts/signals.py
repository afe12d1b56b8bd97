"""What alerts publish: a Django signal, sent with one `event` within the transaction that wrote the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.dispatch import Signal

# Alerts fired, resolved, were silenced or acknowledged; or something was told. → AlertsChanged
alerts_changed = Signal()


@dataclass(frozen=True, slots=True)
class AlertsChanged:
    """`groups`: names of the consumer groups that they are about, of this cluster."""

    cluster: str
    groups: Sequence[str] = ()
