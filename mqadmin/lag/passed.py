"""How many messages of a topic the progress of a group passed since a moment, by the samples of the hot window."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from mqadmin.clusters.models import Group, QueueOffset
from mqadmin.lag import packing, sampling
from mqadmin.lag.models import GroupSample


@dataclass(frozen=True, slots=True)
class Passed:
    """`since`: of the sample that is counted from, later than was asked for where older ones are gone."""

    count: int
    since: datetime


def passed_since(group: Group, topic: str, since: datetime) -> Passed | None:
    """Returns how far the committed offsets moved on; None where nothing of the topic was sampled since.

    A queue that the sample does not know, or knows no offset of, counts from its beginning: never too few.
    """
    sample = _sample(group, topic, int(since.timestamp()))
    if sample is None:
        return None
    known = {(one.broker_name, one.queue_id): one.committed_offset for one in packing.unpack(sample.packed).queues}
    rows = QueueOffset.objects.filter(group=group, topic_name=topic, committed_offset__isnull=False)
    count = sum(
        max(0, (committed or 0) - (known.get((broker, queue_id)) or 0))
        for broker, queue_id, committed in rows.values_list("broker_name", "queue_id", "committed_offset")
    )
    return Passed(count, datetime.fromtimestamp(sample.at_s, UTC))


def _sample(group: Group, topic: str, since_s: int) -> GroupSample | None:
    """Returns the sample that held at that moment, else the first one after it."""
    of_topic = GroupSample.objects.filter(group=group, topic_name=topic)
    # The first cycle of every hour has each topic.
    earliest_s = since_s - sampling.WHOLE_EVERY_S - sampling.LATE_AFTER_S
    held = of_topic.filter(at_s__lte=since_s, at_s__gte=earliest_s).order_by("-at_s").first()
    return held or of_topic.filter(at_s__gt=since_s).order_by("at_s").first()
