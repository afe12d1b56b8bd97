"""Shapes of reports: a day of a cluster, and a group of a day."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers


class DayReportSerializer(serializers.Serializer[Any]):
    """The report of one day (UTC). Sums are over all groups."""

    day = serializers.DateField()
    revision = serializers.IntegerField(help_text="Grows when a later run found other figures.")
    made_at = serializers.DateTimeField()
    is_whole = serializers.BooleanField(help_text="The day was over when it was made.")
    objective_s = serializers.IntegerField(help_text="For how long a message may wait.")
    group_count = serializers.IntegerField()
    over_count = serializers.IntegerField(help_text="Groups that missed their objective.")
    over_s = serializers.IntegerField(help_text="For how long, all groups together.")
    produced = serializers.IntegerField()
    consumed = serializers.IntegerField()
    retried = serializers.IntegerField()
    dead = serializers.IntegerField()


class GroupReportSerializer(serializers.Serializer[Any]):
    """A group in the report of a day; docs/REPORTS.md says what each figure means."""

    group = serializers.CharField(source="group_name")
    known_s = serializers.IntegerField(help_text="For how long its lag is known; all else is about this time.")
    over_s = serializers.IntegerField(help_text="For how long its oldest message was later than the objective.")
    lag_p50 = serializers.FloatField()
    lag_p95 = serializers.FloatField()
    lag_p99 = serializers.FloatField()
    lag_max = serializers.IntegerField()
    lag_last = serializers.IntegerField()
    drain_s = serializers.FloatField(allow_null=True, help_text="Null: never at the pace of its last hour.")
    worst_hour = serializers.IntegerField(allow_null=True, help_text="Hour of the day; null: no hour was over.")
    produced = serializers.IntegerField()
    consumed = serializers.IntegerField()
    retried = serializers.IntegerField()
    dead = serializers.IntegerField()
    members = serializers.IntegerField(allow_null=True, help_text="The most that were online.")
    is_quiet = serializers.BooleanField(help_text="Nothing came in, nothing was consumed.")
    is_abandoned = serializers.BooleanField(help_text="Nobody was online, and messages wait.")
    hot_queue = serializers.CharField(help_text="Topic, broker and queue with most lag; empty where it is even.")
    skew = serializers.FloatField(allow_null=True, help_text="Its lag over that of an even queue.")
    produced_before = serializers.IntegerField(allow_null=True, help_text="The same weekday a week before.")
    over_s_before = serializers.IntegerField(allow_null=True)
    lag_p95_before = serializers.FloatField(allow_null=True)
    rebalance_count = serializers.IntegerField(help_text="Events that were observed.")
    top_failure = serializers.CharField(help_text="What most of its messages died of.")
    hours = serializers.SerializerMethodField()

    def get_hours(self, row: Any) -> list[dict[str, float]]:
        names = ("hour", "known_s", "lag_mean", "lag_max", "over_s")
        return [dict(zip(names, hour, strict=True)) for hour in row.hours]
