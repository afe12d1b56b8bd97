"""Old dead letters go, and failures with their last one."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from mqadmin.deadletters.indexing import write
from mqadmin.deadletters.models import DeadLetter, Failure, FailureHour, KeptMessage
from mqadmin.deadletters.retention import HOURS_KEPT_FOR, remove_old
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
