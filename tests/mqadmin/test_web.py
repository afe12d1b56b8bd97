"""The web process around the pages: health, log-in, headers."""

from __future__ import annotations

import pytest
from asgiref.testing import ApplicationCommunicator
from django.test import Client
from django.urls import resolve, reverse
from django_celery_beat.models import IntervalSchedule, PeriodicTask

from mqadmin.asgi import application
from mqadmin.beat import ENTRIES, install


async def test_healthz_answers_without_database_and_log_in() -> None:
    scope = {"type": "http", "path": "/healthz", "method": "GET", "headers": []}
    communicator = ApplicationCommunicator(application, scope)
    assert (await communicator.receive_output())["status"] == 200
    assert (await communicator.receive_output())["body"] == b"ok\n"
    await communicator.wait()


@pytest.mark.django_db
def test_stranger_is_sent_to_the_log_in() -> None:
    answer = Client().get("/")
    assert answer.status_code == 302
    assert answer["Location"].startswith(reverse("login"))


@pytest.mark.django_db
def test_policy_lets_nothing_in_from_another_host_and_no_inline_script() -> None:
    policy = Client().get(reverse("login"))["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy


def test_root_is_the_overview() -> None:
    assert resolve("/").view_name


@pytest.mark.django_db
def test_beat_entries_are_there_after_migration_and_keep_what_people_change() -> None:
    names = {entry.name for entry in ENTRIES}
    assert set(PeriodicTask.objects.filter(name__in=names).values_list("name", flat=True)) == names
    slower = IntervalSchedule.objects.create(every=60, period="seconds")
    PeriodicTask.objects.filter(name=ENTRIES[0].name).update(enabled=False, interval=slower, queue="elsewhere")
    install()
    row = PeriodicTask.objects.get(name=ENTRIES[0].name)
    assert (row.enabled, row.interval, row.queue) == (False, slower, ENTRIES[0].queue)
