"""The states of a replay and of the entries in its ledger, and which leads to which. Pure.

A replay:   needs approval → running | cancelled
            running ⇄ paused      running → stopped by itself → running
            running → done        running, paused, stopped → cancelled
An entry:   refused from the beginning: a line of a file that is wrong
            waiting → sending → sent | refused | unknown
                      sending → waiting       it is certain that nothing was sent
            waiting → skipped | refused
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from django.db.models import TextChoices
from django.utils.translation import pgettext_lazy


class JobState(TextChoices):
    """The state of a replay. ASKED: another person must approve it. STOPPED: by itself, as too many failed again."""

    ASKED = "asked", pgettext_lazy("replay", "needs approval")
    RUNNING = "running", pgettext_lazy("replay", "running")
    PAUSED = "paused", pgettext_lazy("replay", "paused")
    STOPPED = "stopped", pgettext_lazy("replay", "stopped by itself")
    CANCELLED = "cancelled", pgettext_lazy("replay", "cancelled")
    DONE = "done", pgettext_lazy("replay", "done")


ENDED = (JobState.CANCELLED, JobState.DONE)


class Verb(StrEnum):
    """What changes the state of a replay; the last two are its own."""

    APPROVE = "approve"
    REFUSE = "refuse"
    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    STOP = "stop"
    FINISH = "finish"


# (verb, state) → state. What is missing is refused.
NEXT_STATE: Mapping[tuple[Verb, JobState], JobState] = {
    (Verb.APPROVE, JobState.ASKED): JobState.RUNNING,
    (Verb.REFUSE, JobState.ASKED): JobState.CANCELLED,
    (Verb.CANCEL, JobState.ASKED): JobState.CANCELLED,
    (Verb.PAUSE, JobState.RUNNING): JobState.PAUSED,
    (Verb.RESUME, JobState.PAUSED): JobState.RUNNING,
    (Verb.RESUME, JobState.STOPPED): JobState.RUNNING,
    (Verb.CANCEL, JobState.RUNNING): JobState.CANCELLED,
    (Verb.CANCEL, JobState.PAUSED): JobState.CANCELLED,
    (Verb.CANCEL, JobState.STOPPED): JobState.CANCELLED,
    (Verb.STOP, JobState.RUNNING): JobState.STOPPED,
    (Verb.FINISH, JobState.RUNNING): JobState.DONE,
}


def next_state(verb: Verb, state: JobState) -> JobState | None:
    """Returns the state that the verb leads to; None where it may not be said."""
    return NEXT_STATE.get((verb, state))


class EntryState(TextChoices):
    """The state of one message of a replay.

    SENDING: written before it is sent, so after a crash it may have been. UNKNOWN: whether it was sent can't be known.
    """

    WAITING = "waiting", pgettext_lazy("replayed message", "waiting")
    SENDING = "sending", pgettext_lazy("replayed message", "being sent")
    SENT = "sent", pgettext_lazy("replayed message", "sent")
    SKIPPED = "skipped", pgettext_lazy("replayed message", "skipped")
    REFUSED = "refused", pgettext_lazy("replayed message", "refused")
    UNKNOWN = "unknown", pgettext_lazy("replayed message", "unknown")


# What an entry may become.
NEXT_ENTRY_STATES: Mapping[EntryState, frozenset[EntryState]] = {
    EntryState.WAITING: frozenset({EntryState.SENDING, EntryState.SKIPPED, EntryState.REFUSED}),
    EntryState.SENDING: frozenset({EntryState.WAITING, EntryState.SENT, EntryState.REFUSED, EntryState.UNKNOWN}),
    EntryState.UNKNOWN: frozenset(),
    EntryState.SENT: frozenset(),
    EntryState.SKIPPED: frozenset(),
    EntryState.REFUSED: frozenset(),
}


class Target(TextChoices):
    """To whom the messages of a replay go."""

    GROUP = "group", pgettext_lazy("replay target", "the failed group alone")
    ORIGIN = "origin", pgettext_lazy("replay target", "the original topic, so every group of it")
    TOPIC = "topic", pgettext_lazy("replay target", "another topic")


def is_too_bad(sent_count: int, failed_count: int, *, stop_percent: int, judged_from: int) -> bool:
    """Returns whether so many of the sent failed again that the replay stops by itself. 0 percent: it never does."""
    return bool(stop_percent) and sent_count >= judged_from and failed_count * 100 > sent_count * stop_percent
