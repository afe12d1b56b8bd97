"""Shapes of what the members of a group want, compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from mqadmin.clusters.models import NAME_CHARS_MAX
from mqadmin.subscriptions.checking import MEMBERS, Outcome
from mqadmin.subscriptions.consistency import FindingKind, Source, Wanted
from mqadmin.subscriptions.skipped import SkippedMethod

EXPRESSION_CHARS_MAX = 4000
TOPICS_MAX = 100

FINDING_KINDS = [(kind.value, kind.value) for kind in FindingKind]


class FindingSerializer(serializers.Serializer[Any]):
    """Members that differ from the others of their group in one respect."""

    kind = serializers.ChoiceField(choices=FINDING_KINDS)
    topic = serializers.CharField(allow_blank=True, help_text="Empty where it is about no topic.")
    odd = serializers.ListField(
        child=serializers.CharField(),
        help_text="Client ids of the fewer ones; of equally many, of those that came later.",
    )
    is_tie = serializers.BooleanField(help_text="Whether no side is in the majority: it is not known which is wrong.")
    marked = serializers.ListField(
        child=serializers.CharField(), help_text="As on the page: the odd ones; with `is_tie`, all that are compared."
    )
    member_count = serializers.IntegerField(help_text="Members of which this is known.")
    by_odd = serializers.CharField(allow_blank=True, help_text="What these say; empty: they do not subscribe.")
    by_rest = serializers.CharField(allow_blank=True, help_text="What the others say.")
    in_force = serializers.CharField(allow_blank=True, help_text="The expression by which the broker filters.")
    winner = serializers.CharField(allow_blank=True, help_text="The member that it comes from.")
    since = serializers.DateTimeField(allow_null=True)


class SkippedSerializer(serializers.Serializer[Any]):
    """What is known of how many messages a conflict has skipped: no broker counts them, so a bound at best."""

    method = serializers.ChoiceField(
        choices=[method.value for method in SkippedMethod],
        help_text="`progress_passed`: at most so many, for progress passed no more. `waits`: what is not read waits. "
        "`nothing_skipped`: members differ in how they consume alone. `not_known`.",
    )
    at_most = serializers.IntegerField(allow_null=True, help_text="Of `progress_passed`; else null.")
    since = serializers.DateTimeField(allow_null=True, help_text="From when on that was counted.")
    moved_back_count = serializers.IntegerField(
        help_text="How often an offset was moved back meanwhile; progress in those cycles of sampling is not counted."
    )


class LastingFindingSerializer(FindingSerializer):
    """Members that differ, and what that has skipped so far."""

    skipped = SkippedSerializer()


class WantedSerializer(serializers.Serializer[Any]):
    """What a member subscribes to at one topic."""

    topic = serializers.CharField()
    expression = serializers.CharField(allow_blank=True)
    expression_type = serializers.CharField(allow_blank=True)
    sub_version = serializers.IntegerField()


def wanted_rows(topics: Mapping[str, Wanted]) -> list[dict[str, Any]]:
    """Returns what is subscribed to, by topic."""
    return [{"topic": topic, **wanted._asdict()} for topic, wanted in sorted(topics.items())]


class ComparedMemberSerializer(serializers.Serializer[Any]):
    """What is known of one member that is online."""

    client_id = serializers.CharField()
    source = serializers.ChoiceField(choices=[(source.value, source.value) for source in Source], help_text="How.")  # type: ignore[assignment]
    seen_at = serializers.DateTimeField(allow_null=True)
    message_model = serializers.CharField(allow_blank=True)
    is_orderly = serializers.BooleanField(allow_null=True)
    consume_from_where = serializers.CharField(allow_blank=True)
    topics = serializers.SerializerMethodField(help_text="Null: not known.")

    @extend_schema_field(WantedSerializer(many=True, allow_null=True))
    def get_topics(self, member: Any) -> Any:
        if member.topics is None:
            return None
        return WantedSerializer(wanted_rows(member.topics), many=True).data


class SubscriptionChangeSerializer(serializers.Serializer[Any]):
    """A subscription that began or ended."""

    at = serializers.DateTimeField()
    client_id = serializers.CharField(allow_blank=True, help_text="Empty: the broker's table for the whole group.")
    topic = serializers.CharField()
    expression = serializers.CharField(allow_blank=True)
    expression_type = serializers.CharField(allow_blank=True)
    is_end = serializers.BooleanField(help_text="From then on not subscribed so any more.")


class ElsewhereSerializer(serializers.Serializer[Any]):
    """The same group on another cluster that the caller may see."""

    cluster = serializers.CharField()
    member_count = serializers.IntegerField()
    is_different = serializers.BooleanField(help_text="Whether it subscribes to something else there.")


class ComparisonSerializer(serializers.Serializer[Any]):
    """The members of a group compared: `findings` is empty while all that are known want the same."""

    findings = LastingFindingSerializer(many=True)
    table = WantedSerializer(many=True, help_text="What the broker keeps for the whole group; empty: not known.")
    members = ComparedMemberSerializer(many=True)
    history = SubscriptionChangeSerializer(
        many=True, help_text="Changes of the last 30 days, the latest first; 50 at most."
    )
    elsewhere = ElsewhereSerializer(many=True, help_text="Where the group has members, too; 20 clusters at most.")
    unknown_count = serializers.IntegerField(help_text="Members of which it is not known what they subscribe to.")


class SubscriptionCheckSerializer(serializers.Serializer[Any]):
    """What a new member would want."""

    topics = serializers.DictField(
        child=serializers.CharField(max_length=EXPRESSION_CHARS_MAX, allow_blank=True),
        help_text="Topic → expression; `*` for all messages.",
    )
    expression_type = serializers.ChoiceField(choices=["TAG", "SQL92"], default="TAG")
    message_model = serializers.ChoiceField(choices=["", "CLUSTERING", "BROADCASTING"], default="", allow_blank=True)
    is_orderly = serializers.BooleanField(allow_null=True, default=None)
    consume_from_where = serializers.CharField(max_length=60, default="", allow_blank=True)

    def validate_topics(self, topics: Mapping[str, str]) -> Mapping[str, str]:
        if not 0 < len(topics) <= TOPICS_MAX:
            raise serializers.ValidationError(f"Name between 1 and {TOPICS_MAX} topics.")
        if any(not topic or len(topic) > NAME_CHARS_MAX for topic in topics):
            raise serializers.ValidationError(f"The name of a topic has between 1 and {NAME_CHARS_MAX} characters.")
        return topics


class NotKnownSerializer(serializers.Serializer[Any]):
    """What is not known of a member, of all that was asked about."""

    client_id = serializers.CharField(allow_blank=True, help_text="Empty: it is not known who the members are.")
    what = serializers.ListField(
        child=serializers.ChoiceField(
            choices=[MEMBERS, "topics", "message_model", "is_orderly", "consume_from_where"],
        )
    )
    reason = serializers.CharField(
        allow_blank=True, help_text="Why it did not answer the last time; empty: it has not been asked yet."
    )


class SubscriptionCheckedSerializer(serializers.Serializer[Any]):
    """Whether a member that wants this would be in conflict with those that are online now."""

    outcome = serializers.ChoiceField(
        choices=[outcome.value for outcome in Outcome],
        help_text="`not_known`: no conflict was found, but not all members are known. Ask again later.",
    )
    would_conflict = serializers.BooleanField(allow_null=True, help_text="Null where the outcome is `not_known`.")
    findings = FindingSerializer(many=True, help_text="The new member is named `(new)`.")
    not_known = NotKnownSerializer(many=True, help_text="Members that could not be compared, or not in everything.")
    compared_count = serializers.IntegerField(help_text="Members whose topics it was compared with.")
    unknown_count = serializers.IntegerField(help_text="Members of which it is not known what they subscribe to.")
