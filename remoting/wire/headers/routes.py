"""Headers of topics and clusters by name: 105, 202, 215, 216, 224, 300, 351."""

from __future__ import annotations

from remoting.wire.headers.typed import Header


class GetRouteHeader(Header, kw_only=True):
    """105 GET_ROUTEINFO_BY_TOPIC. `accept_standard_json_only`: no unquoted integer keys in the body."""

    topic: str
    accept_standard_json_only: bool | None = None


class TopicHeader(Header, kw_only=True):
    """202, 215, 216, 300, 351: a topic by name."""

    topic: str
    lo: bool | None = None


class ClusterHeader(Header, kw_only=True):
    """224 GET_TOPICS_BY_CLUSTER."""

    cluster: str
