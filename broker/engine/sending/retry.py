"""Rules of retries: how often a failed message is retried before it becomes a dead letter, and how long it waits.

Pure. Messages that a consumer sends back, and those that it sends to its retry topic itself when sending back failed,
follow two slightly different limits: the first counts the failures before this one, the second this one too.
"""

from __future__ import annotations

from remoting.wire.bodies.groups import SubscriptionGroupConfig
from remoting.wire.codes import V3_4_9

# A retry for which the consumer names no delay level waits at level 3 (10 s) first, then one level longer each time.
FIRST_RETRY_LEVEL = 3
DLQ_QUEUE_NUMS = 1
# The DELAY property of a dead letter: it is not delayed, whatever level the message had before.
DLQ_DELAY_OF_SEND = "-1"
DLQ_DELAY_OF_SEND_BACK = "0"


def retry_limit(group: SubscriptionGroupConfig, header_max: int | None, client_version: int) -> int:
    """Returns how often a message is retried: the header's limit, from clients of V3_4_9 on, else the group's."""
    if header_max is not None and client_version >= V3_4_9:
        return header_max
    return group.retry_max_times


def is_dead_after_send_back(reconsume_times: int, limit: int, delay_level: int) -> bool:
    """Returns whether a message that was sent back becomes a dead letter. With limit 16 the 17th failure is the last.

    `reconsume_times`: that of the stored message. A negative `delay_level`: the consumer wants no retry.
    """
    return reconsume_times >= limit or delay_level < 0


def is_dead_on_send(reconsume_times: int, limit: int) -> bool:
    """Returns whether a retry that the consumer sends itself becomes a dead letter.

    `reconsume_times`: that of the header, which counts the present failure, too.
    """
    return reconsume_times > limit


def retry_level(delay_level: int, reconsume_times: int) -> int:
    """Returns the delay level of the retry; `delay_level` 0 lets the broker choose."""
    return delay_level if delay_level > 0 else FIRST_RETRY_LEVEL + reconsume_times
