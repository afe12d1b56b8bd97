"""What a name server knows of a cluster: its brokers, the routes, the topics' names, who may be written to."""

from __future__ import annotations

from remoting.client.admin.requests import Requests
from remoting.wire.bodies.document import read_body
from remoting.wire.bodies.route import ClusterInfo, TopicList, TopicRouteData
from remoting.wire.codes import RequestCode
from remoting.wire.headers.name_server import (
    AddedTopicsHeader,
    BrokerNameHeader,
    DeleteTopicInNameServerHeader,
    WipedTopicsHeader,
)
from remoting.wire.headers.routes import ClusterHeader, GetRouteHeader
from remoting.wire.headers.typed import read_header


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

    async def topics(self, namesrv: str) -> list[str]:
        """Returns the names of all topics that have a route (206)."""
        answer = await self._requests.ask(namesrv, RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
        return read_body(TopicList, answer.body).topic_list

    async def topics_of(self, namesrv: str, cluster: str) -> list[str]:
        """Returns the names of a cluster's topics (224); none for a cluster that the name server doesn't know."""
        header = ClusterHeader(cluster=cluster)
        answer = await self._requests.ask(namesrv, RequestCode.GET_TOPICS_BY_CLUSTER, header, about=cluster)
        return read_body(TopicList, answer.body).topic_list

    async def system_topics(self, namesrv: str) -> TopicList:
        """Returns the topics named as clusters and brokers, and one broker's address for the other ones (304)."""
        answer = await self._requests.ask(namesrv, RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS)
        return read_body(TopicList, answer.body)

    async def wipe_write_permission(self, namesrv: str, broker_name: str) -> int:
        """Takes the permission to write on this broker out of all routes; returns of how many topics (205).

        Only this name server's, and only in its memory: a broker that registers a changed topic has it again.
        """
        header, code = BrokerNameHeader(broker_name=broker_name), RequestCode.WIPE_WRITE_PERM_OF_BROKER
        answer = await self._requests.ask(namesrv, code, header, about=f"broker {broker_name!r}")
        return read_header(WipedTopicsHeader, answer.ext_fields).wipe_topic_count

    async def add_write_permission(self, namesrv: str, broker_name: str) -> int:
        """Gives all routes to this broker the permissions to read and to write; returns of how many topics (327).

        A topic that had other permissions loses them: Apache's name server sets read and write, whatever was.
        """
        header, code = BrokerNameHeader(broker_name=broker_name), RequestCode.ADD_WRITE_PERM_OF_BROKER
        answer = await self._requests.ask(namesrv, code, header, about=f"broker {broker_name!r}")
        return read_header(AddedTopicsHeader, answer.ext_fields).add_topic_count
