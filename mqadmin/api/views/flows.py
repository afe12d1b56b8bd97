"""`…/flows` of a cluster and `…/topics/<topic>/flow`: what the map of flows shows."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from mqadmin.api.listing import filter_field
from mqadmin.api.resource import Resource
from mqadmin.api.serializers.flows import FlowMapSerializer
from mqadmin.flows.selectors import cluster_flows, topic_flows


class FlowsQuery(serializers.Serializer[Any]):
    """Which topics."""

    q = filter_field("name of a topic, or of a group that reads it")


class ClusterFlows(Resource):
    """Where messages go: topics of groups in trouble first, then those with most coming in; at most 12."""

    @extend_schema(
        operation_id="get_flows",
        summary="Get the flows of a cluster",
        parameters=[FlowsQuery],
        responses=FlowMapSerializer,
    )
    def get(self, request: Request, cluster: str) -> Response:
        query = FlowsQuery(data=request.query_params)
        query.is_valid(raise_exception=True)
        text = query.validated_data["q"].strip()
        return self.when_changed(
            request, {"cluster": cluster}, lambda: Response(FlowMapSerializer(cluster_flows(cluster, text)).data)
        )


class TopicFlows(Resource):
    """Where the messages of a topic go."""

    @extend_schema(operation_id="get_topic_flow", summary="Get the flow of a topic", responses=FlowMapSerializer)
    def get(self, request: Request, cluster: str, topic: str) -> Response:
        return self.when_changed(
            request, {"cluster": cluster}, lambda: Response(FlowMapSerializer(topic_flows(cluster, topic)).data)
        )
