"""The word, shape and colour of each status. A closed table: a status that is not in it is shown as UNKNOWN."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy


@dataclass(frozen=True, slots=True)
class Mark:
    """A status on a page. `shape` is SVG in a box of 10 × 10, drawn in the colour of the CSS class "is-<tone>"."""

    word: str | Promise
    shape: SafeString
    tone: str


_DISC = SafeString('<circle cx="5" cy="5" r="4" stroke="none"/>')
_TRIANGLE = SafeString('<path d="M5 .8 9.6 9H.4z" stroke="none"/>')
_SQUARE = SafeString('<rect x="1" y="1" width="8" height="8" stroke="none"/>')
_RING = SafeString('<circle cx="5" cy="5" r="3.4" fill="none" stroke-width="1.6"/>')
_DIAMOND = SafeString('<path d="M5 0 10 5 5 10 0 5z" stroke="none"/>')
_DOT = SafeString('<circle cx="5" cy="5" r="1.8" stroke="none"/>')
_QUESTION = SafeString(
    '<path d="M2.6 3.2a2.4 2.4 0 1 1 3.5 2.1c-.8.4-1.1.8-1.1 1.5M5 9h.01" fill="none" stroke-width="1.5" '
    'stroke-linecap="round"/>'
)

UNKNOWN = Mark(gettext_lazy("UNKNOWN"), _QUESTION, "unknown")
MARKS: dict[str, Mark] = {
    # a group's verdict
    "ok": Mark(gettext_lazy("OK"), _DISC, "ok"),
    "slow": Mark(gettext_lazy("SLOW"), _TRIANGLE, "slow"),
    "stalled": Mark(gettext_lazy("STALLED"), _SQUARE, "stalled"),
    "stopped": Mark(gettext_lazy("STOPPED"), _RING, "stopped"),
    "failing": Mark(gettext_lazy("FAILING"), _DIAMOND, "stalled"),
    "rewound": Mark(gettext_lazy("REWOUND"), _DIAMOND, "rewound"),
    "busy": Mark(gettext_lazy("BUSY"), _RING, "busy"),
    "quiet": Mark(gettext_lazy("QUIET"), _DOT, "quiet"),
    "unknown": UNKNOWN,
    # a cluster, a broker, a scheduler
    "partial": Mark(gettext_lazy("PARTIAL"), _TRIANGLE, "slow"),
    "unreachable": Mark(gettext_lazy("UNREACHABLE"), _SQUARE, "stalled"),
    "late": Mark(gettext_lazy("LATE"), _TRIANGLE, "slow"),
    "not_running": Mark(gettext_lazy("NOT RUNNING"), _SQUARE, "stalled"),
    "differs": Mark(gettext_lazy("DIFFERS"), _DIAMOND, "slow"),
    "asked": Mark(gettext_lazy("NEEDS APPROVAL"), _TRIANGLE, "slow"),
    # how often a group rebalances
    "calm": Mark(gettext_lazy("CALM"), _DISC, "ok"),
    "restless": Mark(gettext_lazy("RESTLESS"), _TRIANGLE, "slow"),
    "churning": Mark(gettext_lazy("CHURNING"), _SQUARE, "stalled"),
    # a failure of dead letters
    "raised": Mark(gettext_lazy("RAISED"), _TRIANGLE, "slow"),
    # an alert, and what is told of it
    "firing": Mark(gettext_lazy("FIRING"), _SQUARE, "stalled"),
    "pending": Mark(gettext_lazy("PENDING"), _TRIANGLE, "slow"),
    "resolved": Mark(gettext_lazy("RESOLVED"), _DISC, "ok"),
    "acknowledged": Mark(gettext_lazy("ACKNOWLEDGED"), _RING, "slow"),
    "silenced": Mark(gettext_lazy("SILENCED"), _RING, "stopped"),
    # a worker
    "draining": Mark(gettext_lazy("DRAINING"), _RING, "slow"),
    "stopping": Mark(gettext_lazy("STOPPING"), _RING, "stopped"),
    "silent": Mark(gettext_lazy("SILENT"), _SQUARE, "stalled"),
    # a job, an account
    "paused": Mark(gettext_lazy("PAUSED"), _RING, "stopped"),
    "read_only": Mark(gettext_lazy("READ-ONLY"), _RING, "stopped"),
    "deactivated": Mark(gettext_lazy("DEACTIVATED"), _RING, "stopped"),
    # a replay and its messages
    "waiting": Mark(gettext_lazy("WAITING"), _DOT, "quiet"),
    "sending": Mark(gettext_lazy("BEING SENT"), _RING, "slow"),
    "sent": Mark(gettext_lazy("SENT"), _DISC, "ok"),
    "cancelled": Mark(gettext_lazy("CANCELLED"), _RING, "stopped"),
    # what became of a message after an attempt that failed
    "in_queue": Mark(gettext_lazy("IN THE QUEUE"), _DOT, "slow"),
    "with_member": Mark(gettext_lazy("WITH A MEMBER"), _RING, "quiet"),
    "failed_again": Mark(gettext_lazy("FAILED AGAIN"), _TRIANGLE, "slow"),
    "dead": Mark(gettext_lazy("DEAD"), _SQUARE, "stalled"),
    "past": Mark(gettext_lazy("PAST IT"), _DISC, "ok"),
    # what became of an action
    "done": Mark(gettext_lazy("DONE"), _DISC, "ok"),
    "refused": Mark(gettext_lazy("REFUSED"), _SQUARE, "stalled"),
    "failed": Mark(gettext_lazy("FAILED"), _SQUARE, "stalled"),
    "unchanged": Mark(gettext_lazy("UNCHANGED"), _DOT, "quiet"),
    "skipped": Mark(gettext_lazy("SKIPPED"), _RING, "stopped"),
    "running": Mark(gettext_lazy("RUNNING"), _RING, "quiet"),
    "warning": Mark(gettext_lazy("WARNING"), _TRIANGLE, "slow"),
    "note": Mark(gettext_lazy("NOTE"), _DOT, "quiet"),
}

# in a box of 14 × 14, drawn as lines
EVENT_SHAPES: dict[str, SafeString] = {
    "joined": SafeString('<path d="M1.5 7h7m-3-3 3 3-3 3M12 2v10"/>'),
    "left": SafeString('<path d="M5.5 7h7m-3-3 3 3-3 3M2 2v10"/>'),
    "lost": SafeString('<path d="m3 3 8 8m0-8-8 8"/>'),
    "gone": SafeString('<path d="M5.5 7h7m-3-3 3 3-3 3M2 2v1.5M2 6.2v1.6M2 10.5V12"/>'),
    "queues_moved": SafeString('<path d="M2 4.5h9M8.5 2 11 4.5 8.5 7M12 9.5H3M5.5 7 3 9.5 5.5 12"/>'),
    "subscription_changed": SafeString('<path d="M2 4h10M2 7h6M2 10h8"/>'),
    "instance_started": SafeString('<path d="m4 2.5 7 4.5-7 4.5z"/>'),
    "instance_stopped": SafeString('<path d="M3.5 3.5h7v7h-7z"/>'),
    "instance_died": SafeString('<path d="M3.5 3.5h7v7h-7zm2 2 3 3m0-3-3 3"/>'),
    "scaled": SafeString('<path d="M2 12V9m3.3 3V7m3.4 5V5M12 12V2"/>'),
}


def mark_of(name: str) -> Mark:
    """Returns the mark of a status by its name."""
    return MARKS.get(name, UNKNOWN)
