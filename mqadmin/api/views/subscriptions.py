"""What the members of a group want, compared; and whether a deploy would bring one that contradicts them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from mqadmin.api.access import clusters_seen
from mqadmin.api.resource import Resource
from mqadmin.api.serializers.subscriptions import (
    ComparisonSerializer,
    SubscriptionCheckedSerializer,
    SubscriptionCheckSerializer,
    wanted_rows,
)
from mqadmin.clusters import selectors
from mqadmin.clusters.looking import note_looked_at
from mqadmin.clusters.models import Cluster, ClusterState, Group
from mqadmin.live.events import live_group
from mqadmin.subscriptions.checking import Outcome, check
from mqadmin.subscriptions.consistency import MemberView, Wanted
from mqadmin.subscriptions.selectors import ComparedGroup, clusters_with, compared


class Comparison(Resource):
    """The members of a group compared: by their own answers, else by their heartbeats."""

    def live_groups(self, **names: str) -> Sequence[str]:
        """Returns those of the group wherever there is one of its name: what it subscribes to there is told, too."""
        return [live_group(cluster, names["group"]) for cluster in clusters_with(names["group"], Cluster.objects.all())]

    @extend_schema(
        operation_id="compare_group_members", summary="Compare the members of a group", responses=ComparisonSerializer
    )
    def get(self, request: Request, cluster: str, group: str) -> Response:
        def document() -> Response:
            found = compared(selectors.group_head(cluster, group), clusters_seen(request))
            shown = {
                "findings": _with_skipped(found),
                "table": wanted_rows(found.view.table),
                "members": found.view.members,
                "history": [change._asdict() for change in found.history],
                "elsewhere": found.elsewhere,
                "unknown_count": found.unknown_count,
            }
            return Response(ComparisonSerializer(shown).data)

        return self.when_changed(request, {"cluster": cluster, "group": group}, document)


def _with_skipped(found: ComparedGroup) -> list[dict[str, Any]]:
    pairs = zip(found.findings, found.skipped, strict=True)
    return [{**asdict(one), "is_tie": one.is_tie, "skipped": skipped} for one, skipped in pairs]


class Check(Resource):
    """Whether a member with these subscriptions would contradict those that are online; changes nothing.

    For pipelines, before a deploy: `outcome` says whether to go on. Nobody online: nothing to contradict. Members that
    are not known are asked within 15 s of this question, so that the next one may be answered.
    """

    @extend_schema(
        operation_id="check_group_subscription",
        summary="Ask whether a subscription would conflict",
        request=SubscriptionCheckSerializer,
        responses=SubscriptionCheckedSerializer,
    )
    def post(self, request: Request, cluster: str, group: str) -> Response:
        asked = SubscriptionCheckSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        said = asked.validated_data
        head = selectors.group_head(cluster, group)
        wanted = MemberView.wanting(
            {topic: Wanted(expression, said["expression_type"]) for topic, expression in said["topics"].items()},
            message_model=said["message_model"],
            is_orderly=said["is_orderly"],
            consume_from_where=said["consume_from_where"],
        )
        found = compared(head, clusters_seen(request))
        checked = check(found.view, wanted, found.reasons, are_members_known=_are_members_known(head))
        if checked.outcome == Outcome.NOT_KNOWN:
            note_looked_at(head, timezone.now())
        answer = {
            "outcome": checked.outcome,
            "would_conflict": None if checked.outcome == Outcome.NOT_KNOWN else bool(checked.findings),
            "findings": checked.findings,
            "not_known": checked.not_known,
            "compared_count": len(found.view.members) - found.unknown_count,
            "unknown_count": found.unknown_count,
        }
        return Response(SubscriptionCheckedSerializer(answer).data)


def _are_members_known(group: Group) -> bool:
    is_answering = group.cluster.state in (ClusterState.REACHABLE, ClusterState.PARTIAL)
    return is_answering and group.member_count is not None
