"""Alerts of a cluster, its silences; rules, channels and deliveries. Changed by their actions (docs/ALERTS.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils import timezone
from rest_framework import serializers

from mqadmin.alerts import selectors
from mqadmin.alerts.models import Alert, AlertDelivery, AlertRule, AlertSilence
from mqadmin.alerts.selectors import ChannelLine
from mqadmin.alerts.stepping import State
from mqadmin.api.access import scope_of
from mqadmin.api.listing import ListQuery, ListResource, described
from mqadmin.api.rows import Rows, RowsInMemory
from mqadmin.api.serializers.alerts import (
    AlertChannelSerializer,
    AlertDeliverySerializer,
    AlertRuleSerializer,
    AlertSerializer,
    AlertSilenceSerializer,
)
from mqadmin.clusters.models import Cluster
from mqadmin.people import access

CHANNELS = "mq_alerts.view_alertchannel"


class AlertsQuery(ListQuery):
    state = serializers.ChoiceField(
        choices=["", State.FIRING.value, State.RESOLVED.value],
        default="",
        help_text="Those in this state alone; empty: all that fired.",
    )


@described("list_alerts", "List alerts")
class Alerts(ListResource):
    """What fires in a cluster, and what fired, the latest first."""

    row = AlertSerializer
    query = AlertsQuery

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[Alert]:
        return selectors.fired(Cluster.objects.filter(name=names["cluster"]), state=query["state"])


@described("list_silences", "List silences of alerts")
class AlertSilences(ListResource):
    """Silences of a cluster that have not ended, by name."""

    row = AlertSilenceSerializer

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[AlertSilence]:
        found = selectors.silences(Cluster.objects.filter(name=names["cluster"]), timezone.now())
        return RowsInMemory(found, lambda row: [row.name])


@described("list_alert_rules", "List rules for alerts")
class AlertRules(ListResource):
    """Rules by name; 100 at most."""

    row = AlertRuleSerializer
    permission = access.VIEW

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[AlertRule]:
        return RowsInMemory(selectors.rules(), lambda row: [row.name])


@described("list_alert_channels", "List channels for alerts")
class AlertChannels(ListResource):
    """Channels by name, without their addresses and secrets; 100 at most."""

    row = AlertChannelSerializer
    permission = CHANNELS

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[ChannelLine]:
        return RowsInMemory(selectors.channels(), lambda line: [line.channel.name])


@described("list_alert_deliveries", "List deliveries of alerts")
class AlertDeliveries(ListResource):
    """What was told through channels, and what came of it, the latest first."""

    row = AlertDeliverySerializer
    permission = CHANNELS

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[AlertDelivery]:
        clusters = access.visible_clusters(self.request.user, scope_of(self.request))
        return selectors.deliveries(clusters, with_tests=True)
