"""Replays and their ledgers: one entry a message, written before it is sent and again when its outcome is known."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import F, Q

from mqadmin.clusters.models import NAME_CHARS_MAX, Cluster
from mqadmin.deadletters.models import IDENTITY_CHARS, DeadLetter
from mqadmin.replay_files.models import FileMessage
from mqadmin.replays.becoming import Became
from mqadmin.replays.outgoing import lookup_key
from mqadmin.replays.states import ENDED, EntryState, JobState, Target

# Of what a broker or the console said about one message.
WORDS_CHARS_MAX = 500
PERSON_CHARS_MAX = 150
TOKEN_CHARS = 32


def new_token() -> str:
    """Returns a text that no other replay of any console has."""
    return uuid.uuid4().hex


class ReplayJob(models.Model):
    """A replay: what is selected, where it goes, how fast, how far it is.

    `token` is what its messages carry. `identity` is a digest of selection and target: of two replays that say the same
    one runs. `selection` is what `deadletters/selection.py` reads; `until_id`: dead letters that were indexed later are
    not in it. `frozen_after` is the place in the list at which the ledger goes on, `frozen_at` when all was written.
    The counts add up to `total_count`, and change with the entries in one transaction. `selected_count` is how many the
    dry run counted, null where it did not count to the end: what the ledger lacks was archived or removed meanwhile.

    `approved_by` is "" where nobody had to. `lease_token` is who drives it until `lease_until`; only they write entries
    and counts. `problem` is why it does not go on at this moment, `note` what
    the ledger lacks. `failed_count`: messages that failed again at least once; `dead_again_count`: those of them that
    are dead letters again. `judged_sent_count` and `judged_failed_count`: what was so when a person let it go on after
    it had stopped by itself.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="replays")
    token = models.CharField(max_length=TOKEN_CHARS, unique=True, default=new_token)
    identity = models.CharField(max_length=IDENTITY_CHARS)
    group_name = models.CharField(max_length=NAME_CHARS_MAX)
    selection = models.JSONField(default=dict)
    selected_count = models.BigIntegerField(null=True, blank=True)
    until_id = models.BigIntegerField()
    target = models.CharField(max_length=10, choices=Target)
    target_topic = models.CharField(max_length=NAME_CHARS_MAX, blank=True, default="")
    skips_replayed = models.BooleanField(default=True)
    rate_per_s = models.PositiveIntegerField()
    stop_percent = models.PositiveIntegerField()
    started_by = models.CharField(max_length=PERSON_CHARS_MAX, blank=True, default="")
    approved_by = models.CharField(max_length=PERSON_CHARS_MAX, blank=True, default="")
    approved_at = models.DateTimeField(null=True, blank=True)
    state = models.CharField(max_length=10, choices=JobState, default=JobState.RUNNING)
    problem = models.TextField(blank=True, default="")
    note = models.CharField(max_length=WORDS_CHARS_MAX, blank=True, default="")
    created_at = models.DateTimeField()
    frozen_after = models.JSONField(null=True, blank=True)
    frozen_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    lease_token = models.CharField(max_length=TOKEN_CHARS, blank=True, default="")
    lease_until = models.DateTimeField(null=True, blank=True)
    total_count = models.BigIntegerField(default=0)
    waiting_count = models.BigIntegerField(default=0)
    sending_count = models.BigIntegerField(default=0)
    sent_count = models.BigIntegerField(default=0)
    skipped_count = models.BigIntegerField(default=0)
    refused_count = models.BigIntegerField(default=0)
    unknown_count = models.BigIntegerField(default=0)
    failed_count = models.BigIntegerField(default=0)
    dead_again_count = models.BigIntegerField(default=0)
    judged_sent_count = models.BigIntegerField(default=0)
    judged_failed_count = models.BigIntegerField(default=0)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["cluster", "identity"], condition=~Q(state__in=ENDED), name="mq_replay_one_of_a_kind"
            ),
            models.CheckConstraint(
                condition=Q(
                    total_count=F("waiting_count")
                    + F("sending_count")
                    + F("sent_count")
                    + F("skipped_count")
                    + F("refused_count")
                    + F("unknown_count")
                ),
                name="mq_replay_adds_up",
            ),
        )
        indexes = (
            models.Index(fields=["cluster", "-created_at", "-id"], name="mq_replay_latest"),
            models.Index(fields=["cluster", "group_name", "-created_at", "-id"], name="mq_replay_latest_of_group"),
            models.Index(fields=["lease_until"], name="mq_replay_to_drive", condition=~Q(state__in=ENDED)),
        )

    def __str__(self) -> str:
        return f"replay {self.pk} of {self.group_name}: {self.state}"


class ReplayEntry(models.Model):
    """One message of a replay. `dead_letter` is null when the index has removed it; what is said of it here stays.
    One of a file has its `line`, and `file_message` until the file is removed; its dead letter may not be known.

    `words`: why it is skipped, refused, unknown, or waits. `due_at`: it is not touched before; of one that is being
    sent, when it is looked for. `claim_token` is the lease under which it was sent last. `topic`, `broker_name`,
    `queue_id`: where it goes; `queue_offset` is the message's own, once it is known, and before a queue offset below
    which it cannot be. `before_id`: the broker's id of the message before that, "" where it was not known. `new_id`:
    that of what was sent. `failed_attempt`: which one failed last, from 1; 0 where it died and none was seen, null
    where none is known to have failed. `retry_at`: when the next one comes, as far as the broker said so.
    `dead_again_id`: the dead letter that it became.
    """

    # What became of it after it was sent, and whether the group's committed offset is behind it; set by selectors.
    became: Became | None = None
    group_is_past: bool | None = None

    job = models.ForeignKey(ReplayJob, on_delete=models.CASCADE, related_name="entries", db_index=False)
    dead_letter = models.ForeignKey(DeadLetter, on_delete=models.SET_NULL, null=True, related_name="replay_entries")
    file_message = models.ForeignKey(FileMessage, on_delete=models.SET_NULL, null=True, related_name="replay_entries")
    line = models.PositiveIntegerField(null=True, blank=True)
    message_id = models.CharField(max_length=NAME_CHARS_MAX, blank=True, default="")
    origin_topic = models.CharField(max_length=NAME_CHARS_MAX, blank=True, default="")
    state = models.CharField(max_length=10, choices=EntryState, default=EntryState.WAITING)
    words = models.CharField(max_length=WORDS_CHARS_MAX, blank=True, default="")
    attempt_count = models.PositiveIntegerField(default=0)
    claim_token = models.CharField(max_length=TOKEN_CHARS, blank=True, default="")
    claimed_at = models.DateTimeField(null=True, blank=True)
    due_at = models.DateTimeField(null=True, blank=True)
    topic = models.CharField(max_length=NAME_CHARS_MAX, blank=True, default="")
    broker_name = models.CharField(max_length=NAME_CHARS_MAX, blank=True, default="")
    queue_id = models.PositiveIntegerField(null=True, blank=True)
    queue_offset = models.BigIntegerField(null=True, blank=True)
    before_id = models.CharField(max_length=NAME_CHARS_MAX, blank=True, default="")
    new_id = models.CharField(max_length=NAME_CHARS_MAX, blank=True, default="")
    sent_at = models.DateTimeField(null=True, blank=True)
    failed_attempt = models.PositiveIntegerField(null=True, blank=True)
    retry_at = models.DateTimeField(null=True, blank=True)
    dead_again_id = models.BigIntegerField(null=True, blank=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=["job", "dead_letter"], name="mq_replay_entry_identity"),)
        indexes = (
            models.Index(fields=["job", "state", "-id"], name="mq_replay_entry_in_state"),
            models.Index(fields=["job", "-id"], name="mq_replay_entry_latest"),
            models.Index(
                fields=["job", "-id"], name="mq_replay_entry_failed", condition=Q(failed_attempt__isnull=False)
            ),
            models.Index(
                fields=["job", "-id"], name="mq_replay_entry_dead_again", condition=Q(dead_again_id__isnull=False)
            ),
        )

    def __str__(self) -> str:
        return f"{self.message_id or self.line}: {self.state}"

    @property
    def lookup_key(self) -> str:
        """Returns the key by which brokers find what was sent of it; "" where nothing can have been sent."""
        may_be_sent = self.state in (EntryState.SENDING, EntryState.SENT, EntryState.UNKNOWN)
        return lookup_key(self.job.token, self.pk) if may_be_sent else ""
