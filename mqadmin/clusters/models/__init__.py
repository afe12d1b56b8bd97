"""What is known of every cluster: brokers, topics, groups, members, subscriptions, offsets.

What brokers said of them is written by `mqadmin/observing/` alone. Columns that follow from it have an owner each: lag,
rates and verdicts `mqadmin/lag/`, what members said of their queues `mqadmin/subscriptions/asking.py`, when a group is
judged again `mqadmin/objectives/keeping.py`, who looks at it `looking.py`.
What is not known is null, never 0; `seen_at` is when a broker last reported it. Times are the broker's where it reports
one. Offsets are queue offsets: the next to read, or to be written.
"""

from mqadmin.clusters.models.broker import Broker
from mqadmin.clusters.models.cluster import (
    CLUSTER_NAME_CHARS_MAX,
    ID_MAX,
    NAME_CHARS_MAX,
    NAMESRV_CHARS_MAX,
    NOTE_CHARS_MAX,
    POLLED_KINDS,
    Cluster,
    ClusterKind,
    ClusterQuerySet,
    ClusterState,
    FollowerLease,
)
from mqadmin.clusters.models.group import BROADCASTING, NEEDS_ATTENTION, VERDICT_RANKS, Group, Verdict, WaitingMethod
from mqadmin.clusters.models.member import CLIENT_ID_CHARS_MAX, Member, Subscription
from mqadmin.clusters.models.member_progress import MemberProgress
from mqadmin.clusters.models.queue_offset import QueueOffset
from mqadmin.clusters.models.request_cost import RequestCost
from mqadmin.clusters.models.topic import Topic, TopicKind, TopicQueue

__all__ = [
    "BROADCASTING",
    "CLIENT_ID_CHARS_MAX",
    "CLUSTER_NAME_CHARS_MAX",
    "ID_MAX",
    "NAMESRV_CHARS_MAX",
    "NAME_CHARS_MAX",
    "NEEDS_ATTENTION",
    "NOTE_CHARS_MAX",
    "POLLED_KINDS",
    "VERDICT_RANKS",
    "Broker",
    "Cluster",
    "ClusterKind",
    "ClusterQuerySet",
    "ClusterState",
    "FollowerLease",
    "Group",
    "Member",
    "MemberProgress",
    "QueueOffset",
    "RequestCost",
    "Subscription",
    "Topic",
    "TopicKind",
    "TopicQueue",
    "Verdict",
    "WaitingMethod",
]
