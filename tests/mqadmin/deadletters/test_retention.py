"""Old dead letters go, and failures with their last one."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from mqadmin.deadletters import retention
from mqadmin.deadletters.indexing import write
from mqadmin.deadletters.models import DeadLetter, Failure, FailureHour, KeptMessage
from mqadmin.deadletters.retention import HOURS_KEPT_FOR, has_old, remove_old
from mqadmin.deadletters.tasks import remove_old_dead_letters
from mqadmin.observing.gateway import QueueReading
from remoting.wire.properties import Property
from tests.support.dead_letter_brokers import dead_message


def test_what_is_older_than_the_setting_goes_with_all_that_belongs_to_it(prod, queue, settings):
    settings.MQADMIN_DEAD_LETTER_DAYS = 10
    now = timezone.now()
    old_ms, new_ms = (int((now - timedelta(days=days)).timestamp() * 1000) for days in (11, 9))
    messages = (
        dead_message(0, store_timestamp_ms=old_ms, properties={Property.TAGS: "old"}),
        dead_message(1, store_timestamp_ms=old_ms),
        dead_message(2, store_timestamp_ms=new_ms),
    )
    write(prod, queue, QueueReading(messages, 3, 3), now)
    assert remove_old(now) == 2
    assert list(DeadLetter.objects.values_list("queue_offset", flat=True)) == [2]
    assert KeptMessage.objects.count() == 1
    failure = Failure.objects.get()
    assert (failure.tag, failure.dead_count) == ("paid", 2)
    assert remove_old(now) == 0


def test_the_hours_of_a_trend_are_kept_for_a_month(prod, queue):
    now = timezone.now()
    moment_ms = int((now - HOURS_KEPT_FOR - timedelta(hours=2)).timestamp() * 1000)
    write(prod, queue, QueueReading((dead_message(0, store_timestamp_ms=moment_ms),), 1, 1), now)
    remove_old(now)
    assert not FailureHour.objects.exists()
    assert Failure.objects.exists()


def test_one_pass_removes_a_bounded_number_and_says_that_there_is_more(prod, queue, settings, monkeypatch):
    settings.MQADMIN_DEAD_LETTER_DAYS = 10
    monkeypatch.setattr(retention, "REMOVE_BATCH", 2)
    now = timezone.now()
    old_ms = int((now - timedelta(days=11)).timestamp() * 1000)
    messages = tuple(dead_message(offset, store_timestamp_ms=old_ms - offset) for offset in range(5))
    write(prod, queue, QueueReading(messages, 5, 5), now)
    assert (remove_old(now, within_s=0), has_old(now)) == (2, True)
    assert sorted(DeadLetter.objects.values_list("queue_offset", flat=True)) == [0, 1, 2]
    assert (remove_old(now), has_old(now), Failure.objects.exists()) == (3, False, False)


def test_the_task_goes_on_with_what_a_pass_has_left(prod, queue, monkeypatch):
    sent = []
    monkeypatch.setattr(retention, "remove_old", lambda _: 1)
    monkeypatch.setattr(remove_old_dead_letters, "apply_async", lambda **_: sent.append(1))
    remove_old_dead_letters()
    assert not sent
    write(prod, queue, QueueReading((dead_message(0),), 1, 1), timezone.now())
    remove_old_dead_letters()
    assert sent
