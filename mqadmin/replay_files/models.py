"""Files that were sent to be replayed, and their messages."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from mqadmin.clusters.models import NAME_CHARS_MAX, Cluster
from mqadmin.deadletters.models import DeadLetter

DIGEST_CHARS = 64
PERSON_CHARS_MAX = 150
PROBLEM_CHARS_MAX = 500


class ReplayFile(models.Model):
    """A file of a cluster. `read_at` is null while it is read, and where reading it was broken off.

    `digest` is its sha256: who sends the same again gets the same row. `line_count` is `message_count` plus
    `wrong_count`.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="replay_files")
    name = models.CharField(max_length=NAME_CHARS_MAX)
    digest = models.CharField(max_length=DIGEST_CHARS, blank=True, default="")
    byte_count = models.BigIntegerField(default=0)
    line_count = models.PositiveIntegerField(default=0)
    message_count = models.PositiveIntegerField(default=0)
    wrong_count = models.PositiveIntegerField(default=0)
    sent_by = models.CharField(max_length=PERSON_CHARS_MAX, blank=True, default="")
    created_at = models.DateTimeField()
    read_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["cluster", "digest"], condition=Q(read_at__isnull=False), name="mq_replay_file_once"
            ),
        )
        indexes = (models.Index(fields=["cluster", "-created_at", "-id"], name="mq_replay_file_latest"),)

    def __str__(self) -> str:
        return f"{self.name} ({self.message_count})"


class FileMessage(models.Model):
    """A line of a file. `problem` says why it cannot be replayed; it is "" where it can.

    `group_name` is "" where the line does not even say that. `dead_letter` is the one of the index that it is, null
    where it is none; `is_changed`: its content is not known to be that one's. Without `has_body` that one's is sent.
    """

    file = models.ForeignKey(ReplayFile, on_delete=models.CASCADE, related_name="messages", db_index=False)
    line = models.PositiveIntegerField()
    problem = models.CharField(max_length=PROBLEM_CHARS_MAX, blank=True, default="")
    group_name = models.CharField(max_length=NAME_CHARS_MAX, blank=True, default="")
    message_id = models.CharField(max_length=NAME_CHARS_MAX, blank=True, default="")
    origin_topic = models.CharField(max_length=NAME_CHARS_MAX, blank=True, default="")
    dead_letter = models.ForeignKey(DeadLetter, on_delete=models.SET_NULL, null=True, related_name="file_messages")
    is_changed = models.BooleanField(default=False)
    has_body = models.BooleanField(default=False)
    body_bytes = models.PositiveIntegerField(default=0)
    properties = models.JSONField(default=dict)
    body = models.BinaryField(null=True, blank=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=["file", "line"], name="mq_replay_file_line"),)
        indexes = (
            models.Index(fields=["file", "group_name", "line"], name="mq_replay_file_group"),
            models.Index(fields=["file", "line"], name="mq_replay_file_wrong", condition=~Q(problem="")),
        )

    def __str__(self) -> str:
        return f"line {self.line}"
