"""What reports publish: a Django signal, sent with one `event`."""

from __future__ import annotations

from dataclasses import dataclass

from django.dispatch import Signal

# A run began, went on or ended. → RunChanged
run_changed = Signal()


@dataclass(frozen=True, slots=True)
class RunChanged:
    """`clusters`: the names of those that the run is about."""

    clusters: tuple[str, ...]
