"""How many messages of a topic the progress of a group passed since a moment, by the samples of the hot window.

An offset that is moved back breaks the count into parts: what was passed until then stays, and what is passed again
counts again. Of the cycle in which that happened only the ends are known, so progress within it is not counted;
`moved_back_count` says how often that was so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain

from mqadmin.clusters.models import Group, QueueOffset
from mqadmin.lag import packing, sampling
from mqadmin.lag.lateness import LATE_AFTER_S
from mqadmin.lag.models import GroupSample

# Broker and queue id.
_Queue = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Passed:
    """`since`: of the sample that is counted from, later than was asked for where older ones are gone.

    `moved_back_count`: how often an offset of a queue was smaller than in the sample before.
    """

    count: int
    since: datetime
    moved_back_count: int = 0


def passed_since(group: Group, topic: str, since: datetime) -> Passed | None:
    """Returns how far the committed offsets moved on; None where nothing of the topic was sampled since.

    A queue that the sample does not know, or knows no offset of, counts from its beginning. So it is never too few,
    save for the cycles in which an offset was moved back.
    """
    first = _sample(group, topic, int(since.timestamp()))
    if first is None:
        return None
    later = GroupSample.objects.filter(group=group, topic_name=topic, at_s__gt=first.at_s).order_by("at_s")
    rows = QueueOffset.objects.filter(group=group, topic_name=topic)
    now = {
        (broker, queue_id): committed
        for broker, queue_id, committed in rows.values_list("broker_name", "queue_id", "committed_offset")
    }
    states = (_committed(packed) for packed in later.values_list("packed", flat=True).iterator())
    count, moved_back_count = steps_forward(_committed(first.packed), chain(states, [now]))
    return Passed(count, datetime.fromtimestamp(first.at_s, UTC), moved_back_count)


def steps_forward(first: Mapping[_Queue, int | None], later: Iterable[Mapping[_Queue, int | None]]) -> tuple[int, int]:
    """Returns the sum of all steps forward from state to state, and how many steps went back.

    >>> steps_forward({("a", 0): 100}, [{("a", 0): 160}, {("a", 0): 100}, {("a", 0): 130}])
    (90, 1)
    """
    known = {queue: committed or 0 for queue, committed in first.items()}
    count = moved_back_count = 0
    for state in later:
        for queue, committed in state.items():
            if committed is None:
                continue
            step = committed - known.get(queue, 0)
            known[queue] = committed
            count += max(0, step)
            moved_back_count += step < 0
    return count, moved_back_count


def _committed(packed: bytes | memoryview) -> dict[_Queue, int | None]:
    return {(one.broker_name, one.queue_id): one.committed_offset for one in packing.unpack(packed).queues}


def _sample(group: Group, topic: str, since_s: int) -> GroupSample | None:
    """Returns the sample that held at that moment, else the first one after it.

    Where the group did not read the topic then, the one before holds: what it had committed is still so.
    """
    of_topic = GroupSample.objects.filter(group=group, topic_name=topic)
    # The first cycle of every hour has each topic.
    earliest_s = since_s - sampling.WHOLE_EVERY_S - LATE_AFTER_S
    latest = of_topic.filter(at_s__lte=since_s, at_s__gte=earliest_s).order_by("-at_s")[:2]
    held = next((one for one in latest if packing.unpack(one.packed).queues), None)
    return held or of_topic.filter(at_s__gt=since_s).order_by("at_s").first()
