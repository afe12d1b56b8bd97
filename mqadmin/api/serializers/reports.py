"""Shapes of reports: a day of a cluster, a group of a day; the runs that make them, and the mails about nights."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from mqadmin.delivery import DeliveryState
from mqadmin.reports.models import RunState


class DayReportSerializer(serializers.Serializer[Any]):
    """The report of one day (UTC). Sums are over all groups."""

    day = serializers.DateField()
    revision = serializers.IntegerField(help_text="Grows when a later run found other figures.")
    made_at = serializers.DateTimeField()
    is_whole = serializers.BooleanField(help_text="The day was over when it was made.")
    group_count = serializers.IntegerField()
    over_count = serializers.IntegerField(help_text="Groups that missed their objective.")
    over_s = serializers.IntegerField(help_text="For how long, all groups together.")
    produced = serializers.IntegerField()
    consumed = serializers.IntegerField()
    retried = serializers.IntegerField()
    retry_wait_s = serializers.IntegerField(help_text="For how long messages waited in retry topics, all together.")
    dead = serializers.IntegerField()
    anomaly_count = serializers.IntegerField(help_text="Hours of groups that were not as usual.")
    conflict_count = serializers.IntegerField(help_text="Groups whose members did not want the same for a while.")


class SparkFiguresSerializer(serializers.Serializer[Any]):
    """What Spark says of itself when a run has ended."""

    tasks = serializers.IntegerField(default=0)
    input_bytes = serializers.IntegerField(default=0, help_text="Read from the history.")
    shuffle_bytes = serializers.IntegerField(default=0, help_text="Written between its stages.")
    garbage_ms = serializers.IntegerField(default=0, help_text="Spent by the JVM on collecting garbage.")


class ReportMailSerializer(serializers.Serializer[Any]):
    """The mail about a night in one language. `error`: why the latest attempt failed; empty: it did not."""

    day = serializers.DateField()
    language = serializers.CharField()
    state = serializers.ChoiceField(DeliveryState.choices, help_text="waiting: for its first or its next attempt.")
    attempt_count = serializers.IntegerField()
    due_at = serializers.DateTimeField(help_text="Of one that waits: not before.")
    ended_at = serializers.DateTimeField(allow_null=True, help_text="When it was sent or given up.")
    recipient_count = serializers.IntegerField(help_text="To how many addresses the latest attempt went.")
    error = serializers.CharField()
    run = serializers.IntegerField(source="run_id", allow_null=True, help_text="The run that asked for it.")


class ReportRunSerializer(serializers.Serializer[Any]):
    """A run of the job, of some days of one cluster or of all. One runs at a time."""

    run = serializers.IntegerField(source="pk")
    cluster = serializers.CharField(source="cluster_name", help_text="Empty: all clusters.")
    since = serializers.DateField(help_text="The first day (UTC).")
    until = serializers.DateField(help_text="The last day.")
    is_nightly = serializers.BooleanField()
    state = serializers.ChoiceField(RunState.choices)
    stage = serializers.CharField(
        help_text="Of one that runs: sampling (it waits for the first samples), appending, starting, computing."
    )
    percent = serializers.IntegerField(help_text="Of one that runs: how far it is.")
    asked_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
    took_s = serializers.FloatField(allow_null=True, help_text="From its start to its end.")
    row_count = serializers.IntegerField(help_text="Rows that it appended to the history.")
    spark = SparkFiguresSerializer(source="figures", help_text="0 as long as it runs, and where it failed.")
    problem = serializers.CharField(help_text="Why it failed, in one line.")
    remark = serializers.CharField(help_text="What it left out, in one line.")
    mails = ReportMailSerializer(source="mails.all", many=True, help_text="Those about this cluster.")


class MailRecipientsSerializer(serializers.Serializer[Any]):
    """Who gets the mail of each night in one language, or got that of one."""

    language = serializers.CharField()
    recipients = serializers.ListField(child=serializers.CharField(), help_text="Addresses; none: nobody.")


class GroupPeriodSerializer(serializers.Serializer[Any]):
    """A group over the days of a week or a month that have a report. `…_before`: of the period before."""

    group = serializers.CharField(source="group_name")
    day_count = serializers.IntegerField(help_text="Days of which it has figures.")
    known_s = serializers.IntegerField()
    over_s = serializers.IntegerField()
    over_share = serializers.FloatField(help_text="Of the known time.")
    got_worse = serializers.BooleanField(help_text="Half as long again over its objective, a day.")
    produced = serializers.IntegerField()
    consumed = serializers.IntegerField()
    retried = serializers.IntegerField()
    retry_wait_s = serializers.IntegerField()
    dead = serializers.IntegerField()
    rebalance_count = serializers.IntegerField()
    conflict_s = serializers.IntegerField()
    lag_p95 = serializers.FloatField(help_text="That of its worst day.")
    lag_max = serializers.IntegerField()
    wait_max_s = serializers.FloatField(allow_null=True, help_text="The highest age of the oldest message.")
    delivery_p95_s = serializers.FloatField(allow_null=True, help_text="Delivery latency, 95 %: that of its worst day.")
    peak_in_s = serializers.FloatField(allow_null=True)
    peak_out_s = serializers.FloatField(allow_null=True)
    over_s_before = serializers.IntegerField(allow_null=True)
    produced_before = serializers.IntegerField(allow_null=True)
    dead_before = serializers.IntegerField(allow_null=True)
    day_count_before = serializers.IntegerField()


class QueueReportSerializer(serializers.Serializer[Any]):
    """One queue of a group on a day. An even queue: the mean of the queues of its topic."""

    group = serializers.CharField(source="consumer_group")
    topic = serializers.CharField()
    broker = serializers.CharField()
    queue = serializers.IntegerField()
    lag_mean = serializers.FloatField(help_text="Weighted by how long it held.")
    lag_max = serializers.IntegerField()
    produced = serializers.IntegerField(help_text="Messages that came into it.")
    skew = serializers.FloatField(allow_null=True, help_text="Its mean lag over that of an even one; null: no lag.")
    produced_skew = serializers.FloatField(
        allow_null=True, help_text="What came into it over what came into an even one; null: nothing came."
    )


class HourReportSerializer(serializers.Serializer[Any]):
    """One hour of a group. What moved over a gap in sampling belongs to no hour: it is in `gap_…`, where that ended."""

    group = serializers.CharField(source="consumer_group")
    at = serializers.SerializerMethodField()
    known_s = serializers.SerializerMethodField()
    lag_mean = serializers.FloatField(help_text="Weighted by how long it held; so are the percentiles.")
    lag_p50 = serializers.FloatField(allow_null=True, help_text="Null: the report was made before there was any.")
    lag_p95 = serializers.FloatField(allow_null=True)
    lag_max = serializers.IntegerField()
    lag_last = serializers.IntegerField()
    over_s = serializers.SerializerMethodField()
    produced = serializers.IntegerField()
    consumed = serializers.IntegerField()
    retried = serializers.IntegerField()
    dead = serializers.IntegerField()
    gap_produced = serializers.IntegerField()
    gap_consumed = serializers.IntegerField()
    gap_retried = serializers.IntegerField()
    gap_dead = serializers.IntegerField()
    retry_wait_s = serializers.SerializerMethodField()
    members = serializers.IntegerField(allow_null=True, help_text="The most that were online.")

    @extend_schema_field(serializers.DateTimeField(help_text="When the hour began."))
    def get_at(self, row: Any) -> str:
        return f"{datetime.fromtimestamp(row['hour'] / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"

    @extend_schema_field(serializers.IntegerField(help_text="For how long its lag is known; all else is about this."))
    def get_known_s(self, row: Any) -> int:
        return int(row["known_ms"] // 1000)

    @extend_schema_field(serializers.IntegerField(help_text="For how long it was over the objective."))
    def get_over_s(self, row: Any) -> int:
        return int(row["over_ms"] // 1000)

    @extend_schema_field(serializers.IntegerField(help_text="For how long messages waited in its retry topic."))
    def get_retry_wait_s(self, row: Any) -> int:
        return int(row["retry_wait_ms"] // 1000)


class AnomalySerializer(serializers.Serializer[Any]):
    """An hour that was not as the same hour of the days before."""

    hour = serializers.IntegerField(help_text="Hour of the day.")
    reason = serializers.CharField(help_text="stopped, flood, failing, slow, silence, lag")
    value = serializers.FloatField(help_text="Messages an hour; of stopped, slow and lag, messages that waited.")
    usual = serializers.FloatField(help_text="The median of the days before.")


class TopFailureSerializer(serializers.Serializer[Any]):
    """What messages of a group died of."""

    failure = serializers.CharField(help_text="The error's class; where nobody told it, the origin topic.")
    origin_topic = serializers.CharField()
    dead = serializers.IntegerField()


class TopicDeliverySerializer(serializers.Serializer[Any]):
    """How long messages of a topic took from the broker's storing to consumed."""

    topic = serializers.CharField()
    delivered = serializers.IntegerField()
    p50_s = serializers.FloatField()
    p95_s = serializers.FloatField()
    p99_s = serializers.FloatField()


class HourOfDaySerializer(serializers.Serializer[Any]):
    """An hour of a group on a day."""

    hour = serializers.IntegerField(help_text="Hour of the day.")
    known_s = serializers.IntegerField(help_text="For how long its lag is known.")
    lag_mean = serializers.FloatField()
    lag_max = serializers.IntegerField()
    over_s = serializers.IntegerField(help_text="For how long it was over the objective.")
    lag_p50 = serializers.FloatField(
        allow_null=True, help_text="Weighted by how long it held; null: the report was made before there was any."
    )
    lag_p95 = serializers.FloatField(allow_null=True)


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
    growth = serializers.FloatField(
        allow_null=True, help_text="How many times as much came in as a week before, over the hours known of both."
    )
    dead_before = serializers.IntegerField(allow_null=True)
    objective_s = serializers.IntegerField(
        help_text="What was allowed when the day ended; judged is by what held when."
    )
    objective_lag = serializers.IntegerField(allow_null=True, help_text="Messages that might wait; null: any number.")
    wait_p50_s = serializers.FloatField(allow_null=True, help_text="Age of the oldest message not consumed, by minute.")
    wait_p95_s = serializers.FloatField(allow_null=True)
    wait_max_s = serializers.FloatField(allow_null=True)
    delivered = serializers.IntegerField(help_text="Messages of which the delivery latency is known.")
    delivery_p50_s = serializers.FloatField(
        allow_null=True, help_text="Delivery latency: from the broker's storing to consumed. Null: no member told it."
    )
    delivery_p95_s = serializers.FloatField(allow_null=True)
    delivery_p99_s = serializers.FloatField(allow_null=True)
    retry_wait_s = serializers.IntegerField(help_text="For how long messages waited in its retry topic, all together.")
    peak_in_s = serializers.FloatField(allow_null=True, help_text="What came in a second in the hour with most.")
    peak_out_s = serializers.FloatField(allow_null=True, help_text="What was consumed a second in the hour with most.")
    forecast_in_s = serializers.FloatField(allow_null=True, help_text="`peak_in_s` 30 days on, by the trend of 28.")
    forecast_low_s = serializers.FloatField(allow_null=True, help_text="Four times of five it is more than this,")
    forecast_high_s = serializers.FloatField(allow_null=True, help_text="and less than this.")
    most_out_s = serializers.FloatField(allow_null=True, help_text="The most that it was seen to consume, in 28 days.")
    skewed_queue = serializers.CharField(help_text="Topic, broker and queue that got twice an even share, or empty.")
    produced_skew = serializers.FloatField(allow_null=True, help_text="What came into it over an even share.")
    rebalance_count = serializers.IntegerField(help_text="Events that were observed.")
    moved_queues = serializers.IntegerField()
    lost_members = serializers.IntegerField(help_text="Members that were lost, or found missing.")
    conflict_s = serializers.IntegerField(help_text="For how long its members did not want the same.")
    conflict_kind = serializers.CharField(help_text="What that was about for longest; empty: nothing.")
    anomalies = serializers.SerializerMethodField()
    failures = serializers.SerializerMethodField()
    deliveries = serializers.SerializerMethodField()
    hours = serializers.SerializerMethodField()

    @extend_schema_field(AnomalySerializer(many=True))
    def get_anomalies(self, row: Any) -> list[dict[str, Any]]:
        return _named(("hour", "reason", "value", "usual"), row.anomalies)

    @extend_schema_field(TopFailureSerializer(many=True))
    def get_failures(self, row: Any) -> list[dict[str, Any]]:
        return _named(("failure", "origin_topic", "dead"), row.failures)

    @extend_schema_field(TopicDeliverySerializer(many=True))
    def get_deliveries(self, row: Any) -> list[dict[str, Any]]:
        return _named(("topic", "delivered", "p50_s", "p95_s", "p99_s"), row.deliveries)

    @extend_schema_field(HourOfDaySerializer(many=True))
    def get_hours(self, row: Any) -> list[dict[str, Any]]:
        return [one._asdict() for one in row.by_hour]


def _named(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(names, row, strict=True)) for row in rows]
