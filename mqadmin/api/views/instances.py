"""`…/groups/<group>/instances`: how many instances of a hosted group run, and what the others wait for."""

from __future__ import annotations

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from mqadmin.api.resource import Resource
from mqadmin.api.serializers.instances import InstancesSerializer
from mqadmin.clusters import selectors
from mqadmin.hosting.hosted import hosted_instances
from mqadmin.hosting.waits import waits


class Instances(Resource):
    """The instances of a group that this project's workers run. 404 for a group that they do not host."""

    @extend_schema(
        operation_id="get_group_instances", summary="Get the instances of a group", responses=InstancesSerializer
    )
    def get(self, request: Request, cluster: str, group: str) -> Response:
        head = selectors.group_head(cluster, group)
        hosted = hosted_instances(head.cluster.namesrv, head.name)
        if hosted is None:
            raise Http404
        shown = {
            "wanted": hosted.wanted,
            "is_stopped": hosted.is_stopped,
            "running": hosted.running,
            "starting": hosted.starting,
            "waits": waits(head.cluster, head.name),
        }
        return Response(InstancesSerializer(shown).data)
