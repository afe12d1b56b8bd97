"""Reads what the queues of a group were lately, from the hot window, for their verdicts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Container, Iterable
from datetime import UTC, datetime, timedelta

from mqadmin.clusters.models import Group, QueueOffset
from mqadmin.clusters.progress import queue_of
from mqadmin.lag.hot_window import Gap, TopicSample, group_samples
from mqadmin.lag.queue_verdicts import PAST_S, QueueMoment
from remoting.wire.bodies.message_queue import MessageQueue


def queue_moments(group: Group, queues: Iterable[QueueOffset], now: datetime) -> dict[MessageQueue, list[QueueMoment]]:
    """Returns the samples of queues since PAST_S ago or the last gap, with the one that held then, oldest first.

    Of those of `queues` on which messages wait: what was has no bearing on the others' verdicts.
    """
    waiting = {queue_of(queue) for queue in queues if queue.lag}
    return moments(group_samples(group, now - timedelta(seconds=PAST_S), now), waiting) if waiting else {}


def moments(
    found: Iterable[TopicSample | Gap], wanted: Container[MessageQueue]
) -> dict[MessageQueue, list[QueueMoment]]:
    """Returns the same of these samples and the `wanted` queues.

    Where some brokers did not answer only their own queues have a gap. Until they answer again these stand in the
    samples as they were before.
    """
    past: defaultdict[MessageQueue, list[QueueMoment]] = defaultdict(list)
    silent_until_s: dict[str, int] = {}
    for one in found:
        if isinstance(one, Gap):
            _forget(past, one.brokers)
            silent_until_s.update(dict.fromkeys(one.brokers, one.until_s))
            continue
        at = datetime.fromtimestamp(one.at_s, UTC)
        for sample in one.queues:
            if one.at_s <= silent_until_s.get(sample.broker_name, one.at_s - 1):
                continue
            queue = MessageQueue(one.topic, sample.broker_name, sample.queue_id)
            if queue in wanted:
                past[queue].append(QueueMoment(at, sample, one.verdict, one.member_count))
    return dict(past)


def _forget(past: dict[MessageQueue, list[QueueMoment]], brokers: Collection[str]) -> None:
    """Forgets the queues of these brokers; of all, where it is not known which."""
    for queue in [queue for queue in past if not brokers or queue.broker_name in brokers]:
        del past[queue]
