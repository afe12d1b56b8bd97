"""What a name server knows of a cluster: its brokers, the routes, the topics' names."""

from __future__ import annotations

from remoting.client.admin.requests import Requests
from remoting.wire.bodies.document import read_body
from remoting.wire.bodies.route import ClusterInfo, TopicRouteData
from remoting.wire.codes import RequestCode
from remoting.wire.headers.name_server import DeleteTopicInNameServerHeader
from remoting.wire.headers.routes import GetRouteHeader


class Cluster:
    """Asked of one name server; each has a table of its own."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    async def info(self, namesrv: str) -> ClusterInfo:
        """Returns the clusters and brokers that the name server knows (106)."""
        answer = await self._requests.ask(namesrv, RequestCode.GET_BROKER_CLUSTER_INFO)
        return read_body(ClusterInfo, answer.body)

    async def route(self, namesrv: str, topic: str) -> TopicRouteData:
        """Returns a topic's route (105). Raises BrokerRefused (TOPIC_NOT_EXIST) where the name server has none."""
        header = GetRouteHeader(topic=topic, accept_standard_json_only=True)
        code = RequestCode.GET_ROUTEINFO_BY_TOPIC
        answer = await self._requests.ask(namesrv, code, header, about=f"topic {topic!r}")
        return read_body(TopicRouteData, answer.body)

    async def delete_route(self, namesrv: str, topic: str, cluster: str) -> None:
        """Deletes the topic's route to the brokers of a cluster (216)."""
        header = DeleteTopicInNameServerHeader(topic=topic, cluster_name=cluster)
        code = RequestCode.DELETE_TOPIC_IN_NAMESRV
        await self._requests.ask(namesrv, code, header, about=f"topic {topic!r}")
