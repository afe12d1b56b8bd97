"""The header of PUSH_REPLY_MESSAGE_TO_CLIENT (326): a reply, sent by the broker to the producer that requested it."""

from __future__ import annotations

from remoting.wire.headers.typed import Header, Int32, Int64


class ReplyMessageHeader(Header, kw_only=True):
    """`ReplyMessageRequestHeader`: what the replier sent, and the hosts as "ip:port".

    `properties` hold the CORRELATION_ID by which the producer finds its request.
    """

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: Int32
    queue_id: Int32
    sys_flag: Int32
    born_timestamp: Int64
    flag: Int32
    properties: str | None = None
    reconsume_times: Int32 | None = None
    unit_mode: bool | None = None
    born_host: str
    store_host: str
    store_timestamp: Int64
