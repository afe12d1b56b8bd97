"""`…/replays`: dead letters that are sent again, and the ledger of each replay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from mqadmin.api.listing import ListQuery, ListResource, described
from mqadmin.api.resource import Resource
from mqadmin.api.rows import Rows
from mqadmin.api.serializers.replays import ReplayEntrySerializer, ReplaySerializer
from mqadmin.clusters import selectors
from mqadmin.clusters.models import NAME_CHARS_MAX
from mqadmin.replays import selectors as replay_selectors
from mqadmin.replays.models import ReplayEntry, ReplayJob
from mqadmin.replays.selectors import DEAD_AGAIN, FAILED
from mqadmin.replays.states import EntryState


class ReplaysQuery(ListQuery):
    group = serializers.CharField(
        max_length=NAME_CHARS_MAX, default="", allow_blank=True, help_text="Those of this group alone."
    )


@described("list_replays", "List replays")
class Replays(ListResource):
    """Replays of a cluster, the latest first."""

    row = ReplaySerializer
    query = ReplaysQuery

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[ReplayJob]:
        return replay_selectors.replays(selectors.cluster_head(names["cluster"]), query["group"])


class ReplayDetail(Resource):
    """A replay with its counts."""

    @extend_schema(operation_id="get_replay", summary="Get a replay", responses=ReplaySerializer)
    def get(self, request: Request, cluster: str, replay: int) -> Response:
        return Response(ReplaySerializer(replay_selectors.replay(selectors.cluster_head(cluster), replay)).data)


class ReplayEntriesQuery(ListQuery):
    state = serializers.ChoiceField(
        choices=["", *EntryState.values, FAILED, DEAD_AGAIN],
        default="",
        help_text="Those in this state alone; failed: those that failed again; dead_again: those that died again.",
    )


@described("list_replay_entries", "List the messages of a replay")
class ReplayEntries(ListResource):
    """The ledger of a replay in the order of sending: one entry a message, with its outcome."""

    row = ReplayEntrySerializer
    query = ReplayEntriesQuery

    def rows(self, query: Mapping[str, Any], **names: Any) -> Rows[ReplayEntry]:
        job = replay_selectors.replay(selectors.cluster_head(names["cluster"]), names["replay"])
        return replay_selectors.ledger(job, query["state"])
