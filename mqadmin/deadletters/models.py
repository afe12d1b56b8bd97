"""Dead letters by failure, and how far each dead-letter queue is indexed."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q

from mqadmin.clusters.models import NAME_CHARS_MAX, Cluster

FAILURE_CLASS_CHARS_MAX = 200
FAILURE_TEXT_CHARS_MAX = 500
KEYS_CHARS_MAX = 1000
SHAPE_CHARS_MAX = 500
HOST_CHARS_MAX = 64
# A sha256 in hexadecimal, cut: two failures of one cluster must not meet by chance.
IDENTITY_CHARS = 32
OWNER_CHARS_MAX = 100
NOTE_CHARS_MAX = 2000


class DeadLetterQueue(models.Model):
    """A queue of a `%DLQ%` topic, and up to where it is indexed. Offsets are queue offsets.

    `end_offset`: one past the last message, as observed. `claimed_until`: a worker is reading it until then.
    `problem`: why it cannot be read; it is tried again at `claimed_until`.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="dead_letter_queues")
    topic_name = models.CharField(max_length=NAME_CHARS_MAX)
    broker_name = models.CharField(max_length=NAME_CHARS_MAX)
    queue_id = models.PositiveIntegerField()
    next_offset = models.BigIntegerField(default=0)
    end_offset = models.BigIntegerField(default=0)
    claimed_until = models.DateTimeField(null=True, blank=True)
    problem = models.TextField(blank=True, default="")
    indexed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["cluster", "topic_name", "broker_name", "queue_id"], name="mq_dead_letter_queue_identity"
            ),
        )
        indexes = (
            # Those that have something to index.
            models.Index(
                fields=["cluster", "claimed_until"],
                name="mq_dead_letter_queue_behind",
                condition=Q(end_offset__gt=F("next_offset")),
            ),
        )

    def __str__(self) -> str:
        return f"{self.topic_name} {self.broker_name} {self.queue_id}"


class Failure(models.Model):
    """Dead letters of one group that died alike: the same origin topic, tag, retries, error and shape of the body.

    `identity` is a digest of these. `failure_text` is that of the first one; where no member told why, class and text
    are "". `dead_count` counts all that were indexed, also those that have been removed since. `archived_at`: lists
    leave it out, until a message dies of it again. `owner` and `note` are what people said of it.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="failures")
    group_name = models.CharField(max_length=NAME_CHARS_MAX)
    identity = models.CharField(max_length=IDENTITY_CHARS)
    origin_topic = models.CharField(max_length=NAME_CHARS_MAX, blank=True, default="")
    tag = models.CharField(max_length=NAME_CHARS_MAX, blank=True, default="")
    attempt_count = models.IntegerField(default=0)
    failure_class = models.CharField(max_length=FAILURE_CLASS_CHARS_MAX, blank=True, default="")
    failure_text = models.CharField(max_length=FAILURE_TEXT_CHARS_MAX, blank=True, default="")
    shape = models.CharField(max_length=SHAPE_CHARS_MAX, blank=True, default="")
    dead_count = models.BigIntegerField(default=0)
    first_dead_at = models.DateTimeField()
    last_dead_at = models.DateTimeField()
    archived_at = models.DateTimeField(null=True, blank=True)
    owner = models.CharField(max_length=OWNER_CHARS_MAX, blank=True, default="")
    note = models.CharField(max_length=NOTE_CHARS_MAX, blank=True, default="")

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["cluster", "group_name", "identity"], name="mq_failure_identity"),
        )
        indexes = (
            models.Index(fields=["cluster", "-last_dead_at", "-id"], name="mq_failure_latest"),
            models.Index(fields=["cluster", "group_name", "-last_dead_at", "-id"], name="mq_failure_latest_of_group"),
            models.Index(fields=["cluster", "owner", "-last_dead_at", "-id"], name="mq_failure_latest_of_owner"),
            models.Index(fields=["cluster", "origin_topic", "-last_dead_at", "-id"], name="mq_failure_latest_of_topic"),
        )

    def __str__(self) -> str:
        return f"{self.group_name}: {self.failure_class or self.shape} ({self.dead_count})"


class FailureHour(models.Model):
    """How many died of a failure in one hour, which begins at `hour`."""

    failure = models.ForeignKey(Failure, on_delete=models.CASCADE, related_name="hours")
    hour = models.DateTimeField()
    dead_count = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = (models.UniqueConstraint(fields=["failure", "hour"], name="mq_failure_hour_identity"),)

    def __str__(self) -> str:
        return f"{self.failure_id} {self.hour} {self.dead_count}"


def _latest_in(*fields: str, name: str, moment: str = "dead_at") -> tuple[models.Index, models.Index]:
    """Returns an index for each of the two lists, of what is shown and what is archived: none passes over the other."""
    latest = [*fields, f"-{moment}", "-id"]
    return (
        models.Index(fields=latest, name=name, condition=Q(archived_at=None)),
        models.Index(fields=latest, name=f"{name}_arch", condition=Q(archived_at__isnull=False)),
    )


class DeadLetter(models.Model):
    """A message of a `%DLQ%` topic; one row, however often it is read.

    `message_id` is what users know it by: the sender's unique key, else the broker's id (`offset_message_id`).
    `dead_at`: when the broker stored it there. `failed_member`: the client that failed last. What members did not tell
    is "". `archived_at`: lists leave it out.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="dead_letters")
    failure = models.ForeignKey(Failure, on_delete=models.CASCADE, related_name="dead_letters")
    group_name = models.CharField(max_length=NAME_CHARS_MAX)
    broker_name = models.CharField(max_length=NAME_CHARS_MAX)
    queue_id = models.PositiveIntegerField()
    queue_offset = models.BigIntegerField()
    dead_at = models.DateTimeField()
    message_id = models.CharField(max_length=NAME_CHARS_MAX)
    offset_message_id = models.CharField(max_length=NAME_CHARS_MAX)
    origin_topic = models.CharField(max_length=NAME_CHARS_MAX, blank=True, default="")
    tag = models.CharField(max_length=NAME_CHARS_MAX, blank=True, default="")
    # Separated by spaces, with one before and one after, so that a whole key can be searched.
    keys = models.CharField(max_length=KEYS_CHARS_MAX, blank=True, default="")
    born_at = models.DateTimeField(null=True, blank=True)
    born_host = models.CharField(max_length=HOST_CHARS_MAX, blank=True, default="")
    attempt_count = models.IntegerField(default=0)
    failure_class = models.CharField(max_length=FAILURE_CLASS_CHARS_MAX, blank=True, default="")
    failure_text = models.CharField(max_length=FAILURE_TEXT_CHARS_MAX, blank=True, default="")
    failed_member = models.CharField(max_length=NAME_CHARS_MAX, blank=True, default="")
    failed_listener = models.CharField(max_length=NAME_CHARS_MAX, blank=True, default="")
    body_bytes = models.PositiveIntegerField(default=0)
    archived_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (
            # A topic that was made anew counts from 0 again: then the time tells its messages from the former ones.
            models.UniqueConstraint(
                fields=["cluster", "group_name", "broker_name", "queue_id", "queue_offset", "dead_at"],
                name="mq_dead_letter_identity",
            ),
        )
        indexes = (
            *_latest_in("cluster", name="mq_dead_letter_latest"),
            *_latest_in("cluster", "group_name", name="mq_dead_letter_of_group"),
            *_latest_in("failure", name="mq_dead_letter_of_failure"),
            *_latest_in("cluster", name="mq_dead_born", moment="born_at"),
            *_latest_in("cluster", "group_name", name="mq_dead_born_of_group", moment="born_at"),
            *_latest_in("failure", name="mq_dead_born_of_failure", moment="born_at"),
            models.Index(fields=["cluster", "message_id"], name="mq_dead_letter_by_id"),
            models.Index(fields=["dead_at"], name="mq_dead_letter_by_age"),
        )

    def __str__(self) -> str:
        return f"{self.group_name} {self.message_id}"


class ArchiveMark(models.Model):
    """A failure whose dead letters are still to be archived (`archived_at` is theirs) or restored (it is None).

    `up_to_id`: the last one that was there when somebody said so.
    """

    failure = models.OneToOneField(Failure, on_delete=models.CASCADE, related_name="archive_mark", primary_key=True)
    archived_at = models.DateTimeField(null=True, blank=True)
    up_to_id = models.BigIntegerField()

    def __str__(self) -> str:
        return f"{self.failure_id} {self.archived_at}"


class SearchText(models.Model):
    """The texts of a dead letter that can be searched (`search_texts.py`); the index of their trigrams hangs on it.

    `words`: those of all that the row and the sender's properties say, with a space before and after each; `body`: the
    beginning of a kept body, where it is text, and the marks of its failure and its group.
    """

    dead_letter = models.OneToOneField(
        DeadLetter, on_delete=models.CASCADE, related_name="search_text", primary_key=True
    )
    words = models.TextField(blank=True, default="")
    body = models.TextField(blank=True, default="")

    def __str__(self) -> str:
        return f"{self.dead_letter_id}"


class KeptMessage(models.Model):
    """What a dead letter carried, so that it can be read when the broker has removed it.

    `body` is the plain one, not compressed; null where it is larger than what is kept.
    """

    dead_letter = models.OneToOneField(DeadLetter, on_delete=models.CASCADE, related_name="kept", primary_key=True)
    properties = models.JSONField(default=dict)
    body = models.BinaryField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.dead_letter_id}"


class MendedCopy(models.Model):
    """What is sent in place of a dead letter's own body and properties (mqadmin/mending/); the original stays kept.

    `properties` are all that it is sent with; the locked ones are the original's. `version` counts the mendings, from
    1, so that of two people who edit at once the second one notices.
    """

    dead_letter = models.OneToOneField(DeadLetter, on_delete=models.CASCADE, related_name="mended", primary_key=True)
    body = models.BinaryField()
    properties = models.JSONField(default=dict)
    mended_by = models.CharField(max_length=NAME_CHARS_MAX)
    mended_at = models.DateTimeField()
    version = models.PositiveIntegerField(default=1)

    def __str__(self) -> str:
        return f"{self.dead_letter_id} version {self.version}"
