"""How many messages of a topic the progress of a group passed since a moment, by the samples of the hot window.

An offset that is moved back breaks the count into parts: what was passed until then stays, and what is passed again
counts again. Of the cycle in which that happened only the ends are known, so progress within it is not counted;
`moved_back_count` says how often that was so.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import cast

from django.core.cache import cache
from redis.exceptions import RedisError

from mqadmin.clusters.models import Group, QueueOffset
from mqadmin.lag import packing, sampling
from mqadmin.lag.lateness import LATE_AFTER_S
from mqadmin.lag.models import GroupSample

logger = logging.getLogger(__name__)

# After so long nobody looks at the conflict any more.
KEPT_S = 3600
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


@dataclass(slots=True)
class Steps:
    """Steps from state to state of a group's committed offsets: the sum of those forward, and how many went back.

    `known`: where each queue was last. A queue that was not known counts from its beginning.
    """

    known: dict[_Queue, int]
    count: int = 0
    moved_back_count: int = 0

    @classmethod
    def beginning(cls, first: Mapping[_Queue, int | None]) -> Steps:
        return cls({queue: committed or 0 for queue, committed in first.items()})

    def take(self, state: Mapping[_Queue, int | None]) -> None:
        for queue, committed in state.items():
            if committed is None:
                continue
            step = committed - self.known.get(queue, 0)
            self.known[queue] = committed
            self.count += max(0, step)
            self.moved_back_count += step < 0


def passed_since(group: Group, topic: str, since: datetime) -> Passed | None:
    """Returns how far the committed offsets moved on; None where nothing of the topic was sampled since.

    A queue that the sample does not know, or knows no offset of, counts from its beginning. So it is never too few,
    save for the cycles in which an offset was moved back. What was counted is kept for whoever asks next: of two days
    that are 4,000 samples.
    """
    key = _key(group, topic, since)
    counted = _kept(key)
    if counted is None:
        first = _sample(group, topic, int(since.timestamp()))
        if first is None:
            return None
        counted = _Counted(first.at_s, first.at_s, Steps.beginning(_committed(first.packed)))
    later = GroupSample.objects.filter(group=group, topic_name=topic, at_s__gt=counted.until_s).order_by("at_s")
    was_until_s = counted.until_s
    for at_s, packed in later.values_list("at_s", "packed").iterator():
        counted.steps.take(_committed(packed))
        counted.until_s = at_s
    if counted.until_s > was_until_s:
        _keep(key, counted)
    rows = QueueOffset.objects.filter(group=group, topic_name=topic)
    now = {
        (broker, queue_id): committed
        for broker, queue_id, committed in rows.values_list("broker_name", "queue_id", "committed_offset")
    }
    counted.steps.take(now)
    return Passed(counted.steps.count, datetime.fromtimestamp(counted.first_s, UTC), counted.steps.moved_back_count)


def steps_forward(first: Mapping[_Queue, int | None], later: Iterable[Mapping[_Queue, int | None]]) -> tuple[int, int]:
    """Returns the sum of all steps forward from state to state, and how many steps went back.

    >>> steps_forward({("a", 0): 100}, [{("a", 0): 160}, {("a", 0): 100}, {("a", 0): 130}])
    (90, 1)
    """
    steps = Steps.beginning(first)
    for state in later:
        steps.take(state)
    return steps.count, steps.moved_back_count


@dataclass(slots=True)
class _Counted:
    """The steps between the samples of two moments."""

    first_s: int
    until_s: int
    steps: Steps


def _key(group: Group, topic: str, since: datetime) -> str:
    # A name may have characters that no key of a cache may.
    return f"mqadmin:passed:{group.pk}:{sha256(topic.encode()).hexdigest()}:{since.timestamp()}"


def _kept(key: str) -> _Counted | None:
    try:
        return cast("_Counted | None", cache.get(key))
    except (OSError, RedisError):
        return None


def _keep(key: str, counted: _Counted) -> None:
    try:
        cache.set(key, counted, KEPT_S)
    except (OSError, RedisError) as error:
        logger.warning("the cache cannot be reached, so what progress passed is counted anew: %s", error)


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
