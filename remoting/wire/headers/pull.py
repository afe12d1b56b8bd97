"""Headers of pulling: 11, 361 and their answer."""

from __future__ import annotations

from remoting.wire.headers.typed import Header, Int32, Int64

# Bits of `sys_flag` (RocketMQ's PullSysFlag).
COMMIT_OFFSET_FLAG = 1
SUSPEND_FLAG = 2
SUBSCRIPTION_FLAG = 4
LITE_PULL_FLAG = 16


class PullMessageHeader(Header, kw_only=True):
    """`queue_offset` is the next offset to read; `commit_offset` a queue offset too, stored when its bit is set."""

    consumer_group: str
    topic: str
    queue_id: Int32
    queue_offset: Int64
    max_msg_nums: Int32
    sys_flag: Int32
    commit_offset: Int64
    suspend_timeout_millis: Int64
    subscription: str | None = None
    sub_version: Int64
    expression_type: str | None = None
    max_msg_bytes: Int32 | None = None
    bname: str | None = None


class PullMessageResponseHeader(Header, kw_only=True):
    """All four required fields travel with codes 0, 19, 20 and 21 alike: Java unboxes them."""

    suggest_which_broker_id: Int64
    next_begin_offset: Int64
    min_offset: Int64
    max_offset: Int64
    topic_sys_flag: Int32 | None = None
    group_sys_flag: Int32 | None = None
    forbidden_type: Int32 | None = None
