"""`…/groups/<group>/settings` and `…/topics/<topic>/settings`: what each broker has, asked while the caller waits."""

from __future__ import annotations

from collections.abc import Callable

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from mqadmin.actions.declaration import ActionUnavailable
from mqadmin.actions.present import OnBrokers
from mqadmin.api import problems
from mqadmin.api.problems import Problem
from mqadmin.api.resource import Resource
from mqadmin.api.serializers.settings import OnBrokersSerializer
from mqadmin.clusters import selectors
from mqadmin.clusters.models import Cluster
from mqadmin.groups.settings import settings_on_brokers as group_settings
from mqadmin.topics.settings import settings_on_brokers as topic_settings


class GroupSettings(Resource):
    """The settings of a group as each broker has them."""

    @extend_schema(
        operation_id="get_group_settings", summary="Get the settings of a group", responses=OnBrokersSerializer
    )
    def get(self, request: Request, cluster: str, group: str) -> Response:
        head = selectors.group_head(cluster, group)
        return _answer(group_settings, head.cluster, group)


class TopicSettings(Resource):
    """The settings of a topic as each broker has them."""

    @extend_schema(
        operation_id="get_topic_settings", summary="Get the settings of a topic", responses=OnBrokersSerializer
    )
    def get(self, request: Request, cluster: str, topic: str) -> Response:
        head = selectors.topic_head(cluster, topic)
        return _answer(topic_settings, head.cluster, topic)


def _answer(ask: Callable[[Cluster, str], OnBrokers], cluster: Cluster, name: str) -> Response:
    try:
        found = ask(cluster, name)
    except ActionUnavailable as error:
        raise Problem(problems.UNAVAILABLE, str(error)) from error
    document = {
        "items": [{"broker": broker, "settings": values} for broker, values in sorted(found.settings.items())],
        "differing": found.differing,
        "failures": [{"broker": broker, "reason": reason} for broker, reason in sorted(found.failures.items())],
    }
    return Response(OnBrokersSerializer(document).data)
