"""Private: the response to the watch request, what changed on a broker (docs/PRIVATE-REQUESTS.md).

`events` are those since the requested revision; the other parts are the present state of all that these events
concern, or of everything when the response is a snapshot. A group or topic named in `gone_…` does not exist any more.
All times are ms since the epoch by the broker's clock.
"""

from __future__ import annotations

from remoting.wire.bodies.document import Document
from remoting.wire.bodies.groups import SubscriptionGroupConfig
from remoting.wire.bodies.heartbeat import SubscriptionData
from remoting.wire.bodies.topics import TopicConfig

# Kinds of events.
MEMBER_JOINED = "member_joined"
MEMBER_LEFT = "member_left"  # unregistered itself
MEMBER_LOST = "member_lost"  # its connection was closed, or it sent no heartbeat for too long
SUBSCRIPTION_CHANGED = "subscription_changed"
ASSIGNMENT_CHANGED = "assignment_changed"  # another member pulls a queue
TOPIC_CHANGED = "topic_changed"
GROUP_CHANGED = "group_changed"
SCHEDULER_CHANGED = "scheduler_changed"
PROGRESS = "progress"


class WatchEvent(Document, kw_only=True):
    """One event. `detail` holds what the kind needs, e.g. for assignment_changed: from, to (client ids or "")."""

    revision: int
    at_ms: int
    kind: str
    group: str | None = None
    client_id: str | None = None
    topic: str | None = None
    queue_id: int | None = None
    detail: dict[str, str] = {}  # noqa: RUF012 - msgspec copies a default per instance


class DifferenceState(Document, kw_only=True):
    """A member's subscription to a topic at which the group's members differ. `expression` None: it does not subscribe.

    `others`: some of the clients that subscribe otherwise now; none when it `is_over`.
    """

    topic: str
    expression: str | None = None
    expression_type: str | None = None
    sub_version: int = 0
    since_ms: int
    last_seen_ms: int
    is_over: bool = False
    others: list[str] = []  # noqa: RUF012 - msgspec copies a default per instance


class MemberState(Document, kw_only=True):
    """`subscriptions`.

    Those of this member's own last heartbeat, as are consume type, message model and start position.
    """

    client_id: str
    client_addr: str
    language: str
    version: int
    online_since_ms: int
    last_heartbeat_ms: int
    consume_type: str | None = None
    message_model: str | None = None
    consume_from_where: str | None = None
    subscriptions: list[SubscriptionData] = []  # noqa: RUF012
    differences: list[DifferenceState] = []  # noqa: RUF012


class AssignmentState(Document, kw_only=True):
    """The member that pulled this queue last, as the broker observed it."""

    topic: str
    queue_id: int
    client_id: str
    since_ms: int
    last_pull_ms: int


class GroupState(Document, kw_only=True):
    """`subscriptions` is the one table that the broker keeps for the whole group."""

    config: SubscriptionGroupConfig
    consume_type: str | None = None
    message_model: str | None = None
    consume_from_where: str | None = None
    members: list[MemberState] = []  # noqa: RUF012
    subscriptions: list[SubscriptionData] = []  # noqa: RUF012
    assignments: list[AssignmentState] = []  # noqa: RUF012


class QueueState(Document, kw_only=True):
    """`max_store_ms`: store time of the last message, 0 when the queue is empty."""

    topic: str
    queue_id: int
    min_offset: int
    max_offset: int
    max_store_ms: int = 0


class CommittedState(Document, kw_only=True):
    """`behind_since_ms`: store time of the message at `committed_offset`, 0 when the group is at the end."""

    group: str
    topic: str
    queue_id: int
    committed_offset: int
    behind_since_ms: int = 0


class SchedulerKind(Document, kw_only=True):
    """One kind of scheduled work, e.g. "delay".

    `next_due_ms` is in the past while it is late, 0 when nothing waits; `late_ms` is of the last step, -1 before the
    first.
    """

    kind: str
    next_due_ms: int = 0
    waiting_count: int = 0
    late_ms: int = -1


class SchedulerState(Document, kw_only=True):
    """`driver` holds the lease, "" when none does; `late_ms` of the last delivery of any kind, -1 before the first."""

    driver: str = ""
    epoch: int = 0
    since_ms: int = 0
    late_ms: int = -1
    waiting_count: int = 0
    kinds: list[SchedulerKind] = []  # noqa: RUF012


class WatchBody(Document, kw_only=True):
    """The body of one page; `add` joins pages. `now_ms` is when the broker made it."""

    now_ms: int
    cluster: str
    broker_name: str
    broker_addr: str
    version: int
    events: list[WatchEvent] = []  # noqa: RUF012
    topics: list[TopicConfig] = []  # noqa: RUF012
    gone_topics: list[str] = []  # noqa: RUF012
    groups: list[GroupState] = []  # noqa: RUF012
    gone_groups: list[str] = []  # noqa: RUF012
    queues: list[QueueState] = []  # noqa: RUF012
    committed: list[CommittedState] = []  # noqa: RUF012
    scheduler: SchedulerState | None = None

    def add(self, page: WatchBody) -> None:
        """Adds what the next page of the same answer holds."""
        self.now_ms = page.now_ms
        self.events += page.events
        self.topics += page.topics
        self.gone_topics += page.gone_topics
        self.groups += page.groups
        self.gone_groups += page.gone_groups
        self.queues += page.queues
        self.committed += page.committed
        self.scheduler = page.scheduler
