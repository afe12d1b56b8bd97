"""Headers of the name server: 105, 106 and friends."""

from __future__ import annotations

from remoting.wire.headers.typed import Header


class GetRouteHeader(Header, kw_only=True):
    topic: str
    accept_standard_json_only: bool | None = None


class TopicHeader(Header, kw_only=True):
    """202, 215, 216, 300, 351: a topic by name."""

    topic: str
    lo: bool | None = None


class ClusterHeader(Header, kw_only=True):
    """224: the topics of one cluster."""

    cluster: str
