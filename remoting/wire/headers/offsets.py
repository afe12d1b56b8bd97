"""Headers of offset requests: 14, 15, 29, 30, 31, 32, 220, 221, 222, 223, 303, 308, 314.

All offsets are queue offsets.
"""

from __future__ import annotations

from remoting.wire.headers.typed import Header, Int32, Int64


class QueryConsumerOffsetHeader(Header, kw_only=True):
    """14 QUERY_CONSUMER_OFFSET. `set_zero_if_not_found` False: a group without an offset gets QUERY_NOT_FOUND."""

    consumer_group: str
    topic: str
    queue_id: Int32
    set_zero_if_not_found: bool | None = None
    bname: str | None = None


class UpdateConsumerOffsetHeader(Header, kw_only=True):
    """`queue_id` and `commit_offset` may be missing: the broker answers INVALID_PARAMETER."""

    consumer_group: str
    topic: str
    queue_id: Int32 | None = None
    commit_offset: Int64 | None = None
    bname: str | None = None


class QueueHeader(Header, kw_only=True):
    """`GetMaxOffset`, `GetMinOffset`, `GetEarliestMsgStoretime`: one queue."""

    topic: str
    queue_id: Int32
    committed: bool | None = None
    bname: str | None = None


class SearchOffsetHeader(Header, kw_only=True):
    """`timestamp` in ms since the epoch; `boundary_type` LOWER (default) or UPPER."""

    topic: str
    queue_id: Int32
    timestamp: Int64
    boundary_type: str | None = None
    bname: str | None = None


class CloneOffsetsHeader(Header, kw_only=True):
    """314 CLONE_GROUP_OFFSET. Without `topic`: all topics of the source."""

    src_group: str
    dest_group: str
    topic: str | None = None
    offline: bool = False


class OffsetResponseHeader(Header, kw_only=True):
    """The response to 14, 29, 30 and 31."""

    offset: Int64


class TimestampResponseHeader(Header, kw_only=True):
    """The response to 32: ms since the epoch."""

    timestamp: Int64


class ResetOffsetHeader(Header, kw_only=True):
    """222 from tools, 220 to clients.

    `timestamp` in ms, -1 for the end; `queue_id` -1 for all; `offset` -1: by time.
    """

    topic: str
    group: str
    timestamp: Int64
    is_force: bool
    queue_id: Int32 = -1
    offset: Int64 | None = None


class ConsumerStatusHeader(Header, kw_only=True):
    """223 from tools, 221 to clients. `client_addr` holds a client id."""

    topic: str
    group: str
    client_addr: str | None = None


class ConsumeTimeSpanHeader(Header, kw_only=True):
    """303 QUERY_CONSUME_TIME_SPAN."""

    topic: str
    group: str


class CorrectionOffsetHeader(Header, kw_only=True):
    """308 QUERY_CORRECTION_OFFSET. `filter_groups` is joined with ","."""

    compare_group: str
    topic: str
    filter_groups: str | None = None
