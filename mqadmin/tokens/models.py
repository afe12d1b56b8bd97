"""Tokens. The secret is shown once, when it is made; only its digest is kept."""

from __future__ import annotations

from datetime import datetime, timedelta
from hashlib import sha256
from secrets import token_urlsafe

from django.conf import settings
from django.db import models
from django.utils import timezone

from mqadmin.people.access import Scope
from mqadmin.people.roles import Role

# Tells what it is wherever it turns up: in a log, in a repository.
PREFIX = "mqa_"
SECRET_BYTES = 32
NAME_CHARS_MAX = 60
# The last use is written no more often.
LAST_USE_EVERY = timedelta(minutes=1)


def new_secret() -> str:
    """Returns a secret of 256 random bits."""
    return PREFIX + token_urlsafe(SECRET_BYTES)


def digest_of(secret: str) -> str:
    """Returns what is kept of a secret. It is random, so a plain digest tells as little as a slow one."""
    return sha256(secret.encode()).hexdigest()


class ApiToken(models.Model):
    """A token of a person. `clusters` are names, none: all of them. It ends by `expires_at` or `revoked_at`."""

    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=NAME_CHARS_MAX)
    digest = models.CharField(max_length=64, unique=True)
    role = models.CharField(max_length=10, choices=[(role.value, role.value) for role in Role])
    clusters = models.JSONField(default=list, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True, blank=True)
    last_used_from = models.CharField(max_length=64, blank=True, default="")
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["person", "name"], condition=models.Q(revoked_at=None), name="mq_api_token_name"
            ),
        )

    def __str__(self) -> str:
        return f"{self.person}: {self.name}"

    @property
    def scope(self) -> Scope:
        """What it may do of what its person may."""
        return Scope(role=Role(self.role), clusters=frozenset(self.clusters) if self.clusters else None)

    def is_valid(self, now: datetime) -> bool:
        """Whether it is neither revoked nor expired, and its person's account is active."""
        return self.revoked_at is None and now < self.expires_at and self.person.is_active

    def note_use(self, now: datetime, address: str) -> None:
        """Remembers when and from where it was last used, once per LAST_USE_EVERY."""
        if self.last_used_at is None or self.last_used_at < now - LAST_USE_EVERY:
            found = ApiToken.objects.filter(pk=self.pk, last_used_at=self.last_used_at)
            found.update(last_used_at=now, last_used_from=address[:64])
