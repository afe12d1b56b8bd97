"""What pages, sockets and the REST tree read. Only the database is asked, never a broker.

They get models, with what they show of them as properties (`mqadmin/clusters/models/`), put together in a file for
each subject. Lists are filtered, sorted and cut by the database. An unknown cluster, topic or group raises its model's
DoesNotExist (`ObjectDoesNotExist` catches all).
"""

from mqadmin.clusters.selectors.lists import PAGE_SIZE, ListPage, sorted_by
from mqadmin.clusters.selectors.of_clusters import (
    ATTENTION_MAX,
    BrokerPage,
    ClusterCard,
    ClusterPage,
    Overview,
    broker_page,
    cluster_head,
    cluster_names,
    cluster_page,
    existing,
    judgements,
    overview,
)
from mqadmin.clusters.selectors.of_groups import (
    DEPARTED_MAX,
    DEPARTED_WITHIN,
    GROUP_SORTS,
    GroupPage,
    group_head,
    group_page,
    group_rows,
    groups,
    verdict_counts,
)
from mqadmin.clusters.selectors.of_topics import (
    TOPIC_GROUPS_MAX,
    TOPIC_SORTS,
    TopicPage,
    TopicReader,
    topic_head,
    topic_page,
    topic_rows,
    topics,
)

__all__ = [
    "ATTENTION_MAX",
    "DEPARTED_MAX",
    "DEPARTED_WITHIN",
    "GROUP_SORTS",
    "PAGE_SIZE",
    "TOPIC_GROUPS_MAX",
    "TOPIC_SORTS",
    "BrokerPage",
    "ClusterCard",
    "ClusterPage",
    "GroupPage",
    "ListPage",
    "Overview",
    "TopicPage",
    "TopicReader",
    "broker_page",
    "cluster_head",
    "cluster_names",
    "cluster_page",
    "existing",
    "group_head",
    "group_page",
    "group_rows",
    "groups",
    "judgements",
    "overview",
    "sorted_by",
    "topic_head",
    "topic_page",
    "topic_rows",
    "topics",
    "verdict_counts",
]
