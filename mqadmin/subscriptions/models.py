"""Members' own answers, what they subscribed to over time, and which groups' members do not want the same."""

from __future__ import annotations

from django.db import models

from mqadmin.clusters.models import NAME_CHARS_MAX, Group, Member

REASON_CHARS_MAX = 300


class MemberAnswer(models.Model):
    """What one member said of itself when it was last asked (GET_CONSUMER_RUNNING_INFO, 307).

    `asked_at` null: it is to be asked next. `answered_at` null: it has not answered yet; `reason`: why it did not the
    last time, "" when it did. What the member did not tell is "" or null. What queues it holds is its
    `clusters.MemberProgress`.
    """

    member = models.OneToOneField(Member, on_delete=models.CASCADE, related_name="answer", primary_key=True)
    asked_at = models.DateTimeField(null=True, blank=True)
    answered_at = models.DateTimeField(null=True, blank=True)
    reason = models.CharField(max_length=REASON_CHARS_MAX, blank=True, default="")
    message_model = models.CharField(max_length=20, blank=True, default="")
    consume_from_where = models.CharField(max_length=60, blank=True, default="")
    is_orderly = models.BooleanField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = (models.Index(fields=["asked_at"], name="mq_member_answer_by_age"),)

    def __str__(self) -> str:
        return f"{self.member}: {self.reason or self.answered_at}"


class OwnSubscription(models.Model):
    """What a member itself says that it subscribes to. `ended_at` null: still. A changed expression is another row."""

    member = models.ForeignKey(Member, on_delete=models.CASCADE, related_name="own_subscriptions")
    topic_name = models.CharField(max_length=NAME_CHARS_MAX)
    expression = models.TextField(default="*")
    expression_type = models.CharField(max_length=20, default="TAG")
    sub_version = models.BigIntegerField(default=0)
    first_seen_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = (
            models.Index(fields=["member", "ended_at"], name="mq_own_subscription_in_force"),
            models.Index(fields=["ended_at"], name="mq_own_subscription_ended"),
        )

    def __str__(self) -> str:
        return f"{self.member}: {self.topic_name} {self.expression}"


class GroupConflict(models.Model):
    """A group whose members do not want the same, as long as that lasts.

    `kind`: the gravest `consistency.FindingKind`, about `topic_name` ("" where it is about no topic); `odd_count` of
    `member_count` members differ in it from the others.
    """

    group = models.OneToOneField(Group, on_delete=models.CASCADE, related_name="conflict", primary_key=True)
    kind = models.CharField(max_length=20)
    topic_name = models.CharField(max_length=NAME_CHARS_MAX, blank=True, default="")
    odd_count = models.PositiveIntegerField()
    member_count = models.PositiveIntegerField()
    since = models.DateTimeField()
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.group}: {self.kind} {self.topic_name}"
