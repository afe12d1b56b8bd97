"""`…/brokers/<broker>`: what a broker tells of its run; `…/settings`: its settings, which it is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from mqadmin.api import problems
from mqadmin.api.listing import ListQuery, ListResource, described, filter_field
from mqadmin.api.problems import Problem
from mqadmin.api.resource import Resource
from mqadmin.api.rows import Rows, RowsInMemory
from mqadmin.api.serializers.clusters import (
    BrokerDetailSerializer,
    BrokerRunSerializer,
    BrokerSerializer,
    SettingSerializer,
)
from mqadmin.brokers.settings import CHANGED, NOT_KNOWN, BrokerSetting, matching, settings_of
from mqadmin.clusters import selectors
from mqadmin.clusters.figures import Figure
from mqadmin.metrics import selectors as metrics
from mqadmin.metrics.models import BrokerRuntime
from mqadmin.observing.gateway import GatewayError


class BrokerDetail(Resource):
    """The master of a name and its slaves, each with what it told of its run."""

    @extend_schema(operation_id="get_broker", summary="Get a broker", responses=BrokerDetailSerializer)
    def get(self, request: Request, cluster: str, broker: str) -> Response:
        page = selectors.broker_page(cluster, broker)
        runtimes = metrics.runtimes(page.brokers)
        items = [{**BrokerSerializer(one).data, **_run_of(runtimes.get(one.pk))} for one in page.brokers]
        return Response({"name": broker, "items": items})


def _run_of(runtime: BrokerRuntime | None) -> dict[str, Any]:
    """Returns what a broker told of its run, as the document has it."""
    told = runtime or BrokerRuntime()
    run = {
        "put_per_s": Figure(told.put_per_s, told.seen_at),
        "get_per_s": Figure(told.get_per_s, told.seen_at),
        "figures": told.figures,
    }
    return dict(BrokerRunSerializer(run).data)


class SettingsQuery(ListQuery):
    q = filter_field("name, or of a value that may be shown")
    show = serializers.ChoiceField(
        choices=[CHANGED, NOT_KNOWN],
        default="",
        allow_blank=True,
        help_text="Those that differ from their default, or whose default is not known.",
    )


@described("list_broker_settings", "List the settings of a broker")
class Settings(ListResource):
    """Settings of a broker by name, each beside its default: the master is asked while the caller waits."""

    row = SettingSerializer
    query = SettingsQuery

    def live_groups(self, **names: str) -> Sequence[str]:
        """It is asked anew each time."""
        return []

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[BrokerSetting]:
        page = selectors.broker_page(names["cluster"], names["broker"])
        try:
            found = settings_of(page.cluster, page.brokers[0]).settings
        except GatewayError as error:
            raise Problem(problems.UNAVAILABLE, str(error)) from error
        return RowsInMemory(matching(found, query["q"], query["show"]), lambda one: [one.name])
