"""Headers of sending: 10, 310, 320 and their answer."""

from __future__ import annotations

from remoting.wire.headers.typed import Header, Int32, Int64

_LETTERS = dict(
    zip(
        (
            "producer_group",
            "topic",
            "default_topic",
            "default_topic_queue_nums",
            "queue_id",
            "sys_flag",
            "born_timestamp",
            "flag",
            "properties",
            "reconsume_times",
            "unit_mode",
            "max_reconsume_times",
            "batch",
            "bname",
        ),
        "abcdefghijklmn",
        strict=True,
    )
)


class SendMessageHeader(Header, kw_only=True):
    """`SendMessageRequestHeader`, code 10. `queue_id` < 0 lets the broker choose."""

    producer_group: str
    topic: str
    default_topic: str = "TBW102"
    default_topic_queue_nums: Int32 = 4
    queue_id: Int32
    sys_flag: Int32
    born_timestamp: Int64
    flag: Int32
    properties: str | None = None
    reconsume_times: Int32 | None = None
    unit_mode: bool | None = None
    max_reconsume_times: Int32 | None = None
    batch: bool | None = None
    bname: str | None = None


class SendMessageHeaderV2(SendMessageHeader, rename=_LETTERS, kw_only=True):
    """`SendMessageRequestHeaderV2`, codes 310 and 320: the same fields under one-letter names.

    Declared again because msgspec renames only the fields that a class declares itself.
    """

    producer_group: str
    topic: str
    default_topic: str = "TBW102"
    default_topic_queue_nums: Int32 = 4
    queue_id: Int32
    sys_flag: Int32
    born_timestamp: Int64
    flag: Int32
    properties: str | None = None
    reconsume_times: Int32 | None = None
    unit_mode: bool | None = None
    max_reconsume_times: Int32 | None = None
    batch: bool | None = None
    bname: str | None = None


class SendMessageResponseHeader(Header, kw_only=True):
    """`msg_id` is the offset message id; for a batch one per message, comma-separated."""

    msg_id: str
    queue_id: Int32
    queue_offset: Int64
    transaction_id: str | None = None
    batch_uniq_id: str | None = None
    recall_handle: str | None = None
