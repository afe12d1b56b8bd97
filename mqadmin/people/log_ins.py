"""Log-ins: noted when they happen, listed, ended. The session is Django's; ending a log-in deletes it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from mqadmin.people.models import LogIn

ADDRESS_CHARS_MAX = 64
USER_AGENT_CHARS_MAX = 200


def note(request: HttpRequest, user: Any, **_: Any) -> None:
    """Notes a log-in, by password or single sign-on: a receiver of Django's `user_logged_in`."""
    if request.session.session_key is None:
        request.session.save()
    LogIn.objects.update_or_create(
        session_key=request.session.session_key,
        defaults={
            "person": user,
            "at": timezone.now(),
            "address": request.META.get("REMOTE_ADDR", "")[:ADDRESS_CHARS_MAX],
            "user_agent": request.headers.get("User-Agent", "").replace("\0", "")[:USER_AGENT_CHARS_MAX],
        },
    )


def open_log_ins(person_pk: Any) -> QuerySet[LogIn]:
    """Returns a person's log-ins whose session goes on, newest first."""
    return open_of([person_pk]).order_by("-at")


def open_of(person_pks: Collection[Any]) -> QuerySet[LogIn]:
    """Returns the log-ins of some people whose session goes on."""
    return LogIn.objects.filter(person__in=person_pks, session_key__in=_open_sessions())


def end(log_ins: Collection[LogIn]) -> None:
    """Ends log-ins: the next request of each is one of nobody, its open pages are closed within a heartbeat."""
    with transaction.atomic():
        Session.objects.filter(session_key__in=[one.session_key for one in log_ins]).delete()
        LogIn.objects.filter(pk__in=[one.pk for one in log_ins]).delete()


def forget_ended() -> int:
    """Deletes the rows of log-ins whose session is gone; returns how many."""
    return LogIn.objects.exclude(session_key__in=_open_sessions()).delete()[0]


def _open_sessions() -> QuerySet[Session, Any]:
    return Session.objects.filter(expire_date__gt=timezone.now()).values("session_key")
