"""Headers of requests that look up messages: 12, 33, 321."""

from __future__ import annotations

from msgspec import field

from remoting.wire.headers.typed import Header, Int32, Int64


class ViewMessageHeader(Header, kw_only=True):
    """33 VIEW_MESSAGE_BY_ID. `offset` is a commit-log offset, taken from an offset message id."""

    offset: Int64
    topic: str | None = None


class QueryMessageHeader(Header, kw_only=True):
    """12 QUERY_MESSAGE. Times are ms since the epoch, both included.

    `with_deleted`: our broker finds messages of a topic that was deleted since, too, as Apache's always does.
    """

    topic: str
    key: str
    max_num: Int32
    begin_timestamp: Int64
    end_timestamp: Int64
    unique_key_query: str | None = field(default=None, name="_UNIQUE_KEY_QUERY")
    with_deleted: bool | None = None


class QueryMessageResponseHeader(Header, kw_only=True):
    """The end of the key index: store time (ms) and commit-log offset of the last message in it."""

    index_last_update_timestamp: Int64
    index_last_update_phyoffset: Int64


class QueryConsumeQueueHeader(Header, kw_only=True):
    """321 QUERY_CONSUME_QUEUE. `index`: the queue offset to begin with."""

    topic: str
    queue_id: Int32
    index: Int64
    count: Int32
    consumer_group: str | None = None
