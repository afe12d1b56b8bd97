"""`…/groups/<group>/failures` and `…/latest-failures`: what messages fail of before they are dead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from consumer.models import MessageFailure
from mqadmin.api.listing import ListResource, described
from mqadmin.api.resource import Resource
from mqadmin.api.rows import Rows
from mqadmin.api.serializers.failing import MembersToldSerializer, MessageFailureSerializer
from mqadmin.clusters import selectors
from mqadmin.deadletters import failing


@described("list_group_failures", "List why messages of a group failed")
class GroupFailures(ListResource):
    """The latest failure of each message that this project's listeners failed on, the newest first."""

    row = MessageFailureSerializer

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[MessageFailure]:
        head = selectors.group_head(names["cluster"], names["group"])
        return failing.message_failures(head.cluster, head.name)

    def live_groups(self, **names: str) -> Sequence[str]:
        """Returns none: the consumer writes its rows without telling the console."""
        return []


class LatestFailures(Resource):
    """Members of a group with what failed there last, and whether they are suspended: asked while the caller waits."""

    @extend_schema(
        operation_id="list_latest_failures",
        summary="Ask the members of a group what failed there",
        responses=MembersToldSerializer,
    )
    def get(self, request: Request, cluster: str, group: str) -> Response:
        page = selectors.group_page(cluster, group)
        return Response(MembersToldSerializer(failing.members_told(page.cluster, group, page.members)).data)
