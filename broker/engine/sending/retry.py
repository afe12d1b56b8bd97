"""Rules of retries: when a failed message has had enough, and where it goes then.

Pure. What a consumer sends back, and what it sends to its retry topic itself when that failed, follow two slightly
different limits: the first counts the failures before this one, the second this one too.
"""

from __future__ import annotations

from remoting.wire.bodies.groups import SubscriptionGroupConfig
from remoting.wire.codes import V3_4_9

# A retry without a level of its own waits at level 3 (10 s) first, then one level longer each time.
FIRST_RETRY_LEVEL = 3
DLQ_QUEUE_NUMS = 1
# Tells readers that a dead letter is not to be delayed, whatever the message said before.
DLQ_DELAY_OF_SEND = "-1"
DLQ_DELAY_OF_SEND_BACK = "0"


def retry_limit(group: SubscriptionGroupConfig, header_max: int | None, client_version: int) -> int:
    """The client's limit counts where it sent one and is young enough to mean it (V3_4_9)."""
    if header_max is not None and client_version >= V3_4_9:
        return header_max
    return group.retry_max_times


def is_dead_after_send_back(reconsume_times: int, limit: int, delay_level: int) -> bool:
    """`reconsume_times` of the stored message. With limit 16 the 17th failure is the last."""
    return reconsume_times >= limit or delay_level < 0


def is_dead_on_send(reconsume_times: int, limit: int) -> bool:
    """`reconsume_times` of the header, which counts the failure that led here."""
    return reconsume_times > limit


def retry_level(delay_level: int, reconsume_times: int) -> int:
    """The level of the next try; 0 lets the broker choose."""
    return delay_level if delay_level > 0 else FIRST_RETRY_LEVEL + reconsume_times
