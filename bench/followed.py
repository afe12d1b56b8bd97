"""The rows of a large cluster, as following it would have written them: for benchmarks of what reads them.

Import it when Django is set up.
"""

from __future__ import annotations

from datetime import datetime

from mqadmin.clusters.models import VERDICT_RANKS, Cluster, Group, QueueOffset, Topic, TopicQueue, Verdict
from tests.support.console_rows import make_cluster

BATCH_ROWS = 5_000
# For one group of each other verdict, so many are OK.
OK_PER_OTHER = 20


def make_followed(
    *, topic_count: int, group_count: int, read_topics: int, queue_count: int, now: datetime
) -> tuple[Cluster, list[Group]]:
    """Makes the cluster "local": each group reads all queues of one of the first `read_topics` topics."""
    cluster = make_cluster(now=now)
    topics = Topic.objects.bulk_create(
        (
            Topic(
                cluster=cluster,
                name=f"topic-{number}",
                read_queue_count=queue_count,
                write_queue_count=queue_count,
                perm=6,
                message_count=number * 7919 % 100_003,
                in_per_s=1.5,
                seen_at=now,
            )
            for number in range(topic_count)
        ),
        batch_size=BATCH_ROWS,
    )
    TopicQueue.objects.bulk_create(
        (
            TopicQueue(topic=topic, broker_name="broker-a", queue_id=each, min_offset=0, max_offset=1000, seen_at=now)
            for topic in topics
            for each in range(queue_count)
        ),
        batch_size=BATCH_ROWS,
    )
    verdicts = [verdict for verdict in Verdict for _ in range(OK_PER_OTHER if verdict == Verdict.OK else 1)]
    groups = Group.objects.bulk_create(
        (
            Group(
                cluster=cluster,
                name=f"group-{number}",
                verdict=(verdict := verdicts[number % len(verdicts)]),
                verdict_rank=VERDICT_RANKS[verdict],
                verdict_since=now,
                message_model="CLUSTERING",
                member_count=2,
                lag=number * 7919 % 100_003,
                behind_since=now,
                in_per_s=1.5,
                out_per_s=1.5,
                seen_at=now,
            )
            for number in range(group_count)
        ),
        batch_size=BATCH_ROWS,
    )
    QueueOffset.objects.bulk_create(
        (
            QueueOffset(
                group=group,
                topic_name=topics[number % read_topics].name,
                broker_name="broker-a",
                queue_id=each,
                committed_offset=990,
                seen_at=now,
            )
            for number, group in enumerate(groups)
            for each in range(queue_count)
        ),
        batch_size=BATCH_ROWS,
    )
    return cluster, groups
