"""Header of topic changes: 17."""

from __future__ import annotations

from remoting.wire.headers.typed import Header, Int32


class CreateTopicHeader(Header, kw_only=True):
    """17 UPDATE_AND_CREATE_TOPIC. `attributes`: `+key=value,-key`, comma-separated."""

    topic: str
    default_topic: str = "TBW102"
    read_queue_nums: Int32
    write_queue_nums: Int32
    perm: Int32
    topic_filter_type: str = "SINGLE_TAG"
    topic_sys_flag: Int32 = 0
    order: bool = False
    attributes: str | None = None
    force: bool | None = None
