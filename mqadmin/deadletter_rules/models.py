"""Rules, how often each has replayed a message, what it is about to do, and what it raised."""

from __future__ import annotations

import uuid

from django.db import models

from mqadmin.clusters.models import NAME_CHARS_MAX, Cluster
from mqadmin.deadletter_rules.deciding import Does
from mqadmin.deadletters.models import FAILURE_CLASS_CHARS_MAX, FAILURE_TEXT_CHARS_MAX, IDENTITY_CHARS, Failure

RULE_NAME_CHARS_MAX = 100
PERSON_CHARS_MAX = 150
WORDS_CHARS_MAX = 500


class DeadLetterRule(models.Model):
    """A rule about the dead letters of one group: of one failure (`identity`), or of those that match the patterns.

    `acts_for`: whoever made it. `reached_id`: dead letters up to that one are settled, but for those that show later in
    `gaps` (gaps.py). Both only ever move in the transaction that notes what was decided, and counts it in `look_count`.
    Those up to `began_behind_id` lay there when it began to run.
    `last_at`, `last_words`, `last_run`: what it did last.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="dead_letter_rules")
    name = models.CharField(max_length=RULE_NAME_CHARS_MAX)
    group_name = models.CharField(max_length=NAME_CHARS_MAX)
    does = models.CharField(max_length=10, choices=Does)
    identity = models.CharField(max_length=IDENTITY_CHARS, blank=True, default="")
    class_pattern = models.CharField(max_length=FAILURE_CLASS_CHARS_MAX, blank=True, default="")
    text_pattern = models.CharField(max_length=FAILURE_TEXT_CHARS_MAX, blank=True, default="")
    after_minutes = models.PositiveIntegerField(default=0)
    times_max = models.PositiveIntegerField(default=1)
    rate_per_s = models.PositiveIntegerField(default=1)
    from_hour = models.PositiveSmallIntegerField(default=0)
    to_hour = models.PositiveSmallIntegerField(default=0)
    acts_for = models.CharField(max_length=PERSON_CHARS_MAX)
    is_running = models.BooleanField(default=False)
    began_behind_id = models.BigIntegerField(default=0)
    reached_id = models.BigIntegerField(default=0)
    gaps = models.JSONField(default=list, blank=True)
    look_count = models.BigIntegerField(default=0)
    made_at = models.DateTimeField()
    last_at = models.DateTimeField(null=True, blank=True)
    last_words = models.CharField(max_length=WORDS_CHARS_MAX, blank=True, default="")
    last_run = models.UUIDField(null=True, blank=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=["cluster", "name"], name="mq_dead_letter_rule_identity"),)

    def __str__(self) -> str:
        return f"{self.name} of {self.group_name}: {self.does}"


class RuleCount(models.Model):
    """How often a rule has replayed a message; counted before it is sent, so never too seldom.

    What was counted for a replay that was refused is taken back.
    """

    rule = models.ForeignKey(DeadLetterRule, on_delete=models.CASCADE, related_name="counts", db_index=False)
    message_id = models.CharField(max_length=NAME_CHARS_MAX)
    count = models.PositiveIntegerField(default=0)
    last_at = models.DateTimeField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=["rule", "message_id"], name="mq_rule_count_identity"),)
        indexes = (models.Index(fields=["last_at"], name="mq_rule_count_by_age"),)

    def __str__(self) -> str:
        return f"{self.message_id}: {self.count}"


class RuleTurn(models.Model):
    """An action that a rule has decided on and not ended yet. Its key makes a second attempt the same run."""

    key = models.UUIDField(primary_key=True, default=uuid.uuid4)
    rule = models.ForeignKey(DeadLetterRule, on_delete=models.CASCADE, related_name="turns")
    action = models.CharField(max_length=100)
    arguments = models.JSONField(default=dict)
    due_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.rule_id} {self.action}"


class RaisedFailure(models.Model):
    """A failure that a rule shows on the overview, until it is archived or the rule is paused or deleted."""

    rule = models.ForeignKey(DeadLetterRule, on_delete=models.CASCADE, related_name="raised", db_index=False)
    failure = models.ForeignKey(Failure, on_delete=models.CASCADE, related_name="raised")
    raised_at = models.DateTimeField()
    last_at = models.DateTimeField()
    dead_count = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = (models.UniqueConstraint(fields=["rule", "failure"], name="mq_raised_failure_identity"),)

    def __str__(self) -> str:
        return f"{self.rule_id} {self.failure_id}"
