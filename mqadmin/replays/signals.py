"""What a replay publishes, within the transaction that wrote it or after it."""

from __future__ import annotations

from dataclasses import dataclass

from django.dispatch import Signal

from mqadmin.replays.models import ReplayJob

# A replay began, went on, or changed its state. → ReplayMoved
replay_moved = Signal()


@dataclass(frozen=True, slots=True)
class ReplayMoved:
    job: ReplayJob


def say_moved(job: ReplayJob) -> None:
    replay_moved.send(sender=ReplayJob, event=ReplayMoved(job))
