"""Headers of pulling: 11, 361 and their answer (wire-protocol 2.2)."""

from __future__ import annotations

from remoting.wire.headers.typed import Header

# Bits of `sys_flag` (RocketMQ's PullSysFlag).
COMMIT_OFFSET_FLAG = 1
SUSPEND_FLAG = 2
SUBSCRIPTION_FLAG = 4
CLASS_FILTER_FLAG = 8
LITE_PULL_FLAG = 16


class PullMessageHeader(Header, kw_only=True):
    """`queue_offset` is the next offset to read; `commit_offset` a queue offset too, stored when its bit is set."""

    consumer_group: str
    topic: str
    queue_id: int
    queue_offset: int
    max_msg_nums: int
    sys_flag: int
    commit_offset: int
    suspend_timeout_millis: int
    subscription: str | None = None
    sub_version: int
    expression_type: str | None = None
    max_msg_bytes: int | None = None
    bname: str | None = None


class PullMessageResponseHeader(Header, kw_only=True):
    """All four required fields travel with codes 0, 19, 20 and 21 alike: Java unboxes them."""

    suggest_which_broker_id: int
    next_begin_offset: int
    min_offset: int
    max_offset: int
    topic_sys_flag: int | None = None
    group_sys_flag: int | None = None
    forbidden_type: int | None = None
