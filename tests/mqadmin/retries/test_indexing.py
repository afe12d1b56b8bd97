"""One row a failed attempt, whatever happens between reading and writing; and nothing that brokers would keep."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from consumer.models import MessageFailure
from mqadmin.observing.gateway import DelayReading, QueueReading
from mqadmin.retries import indexing, tasks
from mqadmin.retries.indexing import KEPT_FOR, index_step, write
from mqadmin.retries.models import DelayQueue, DelayRead, FailedAttempt
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import response
from remoting.wire.headers.pull import COMMIT_OFFSET_FLAG
from remoting.wire.names import SCHEDULE_TOPIC, TIMER_TOPIC
from remoting.wire.properties import Property
from tests.support import console_rows as seed
from tests.support.delay_queues import FAILED_MS, retried


def offsets() -> list[int]:
    return list(FailedAttempt.objects.order_by("queue_offset").values_list("queue_offset", flat=True))


def test_retries_are_read_with_their_due_times_and_other_delayed_messages_are_not(prod, queues):
    queues.messages[SCHEDULE_TOPIC] = [retried(0), retried(1, target="orders"), retried(2)]
    assert index_step(prod) == 2
    assert offsets() == [0, 2]
    row = FailedAttempt.objects.get(queue_offset=2)
    assert row.due_at is not None
    assert (row.due_at - row.failed_at).total_seconds() == 10
    assert row.broker_name == "broker-a"


def test_no_group_joins_and_nothing_is_committed(prod, queues):
    queues.messages[SCHEDULE_TOPIC] = [retried(0)]
    index_step(prod)
    assert {(group, flag & COMMIT_OFFSET_FLAG) for group, _, flag in queues.pulled} == {("TOOLS_CONSUMER", 0)}


def test_it_goes_on_where_it_stopped_and_pulls_nothing_where_nothing_came(prod, queues):
    queues.messages[SCHEDULE_TOPIC] = [retried(offset) for offset in range(3)]
    index_step(prod)
    queues.pulled.clear()
    assert index_step(prod) == 0
    assert queues.pulled == []
    queues.messages[SCHEDULE_TOPIC] += [retried(3)]
    assert index_step(prod) == 1
    assert [offset for _, offset, _ in queues.pulled] == [3]


def test_a_long_queue_is_read_in_pages(prod, queues):
    queues.messages[SCHEDULE_TOPIC] = [retried(offset) for offset in range(1100)]
    assert index_step(prod) == 1100
    assert FailedAttempt.objects.filter(due_at=None).count() == 0


def test_of_too_many_the_oldest_are_passed_over_and_counted(prod, queues, monkeypatch):
    monkeypatch.setattr(indexing, "BEHIND_MAX", 10)
    queues.messages[SCHEDULE_TOPIC] = [retried(offset) for offset in range(25)]
    assert index_step(prod) == 10
    assert offsets() == list(range(15, 25))
    assert DelayQueue.objects.get().skipped_count == 15
    assert DelayRead.objects.get().skipped_at is not None


def test_up_to_when_a_broker_is_read_is_noted_where_it_told_its_ends_and_is_read_up_to_them(prod, queues):
    index_step(prod)
    assert not DelayRead.objects.exists()
    queues.messages[SCHEDULE_TOPIC] = [retried(0)]
    before = timezone.now()
    # Behind: no time to read.
    index_step(prod, step_s=-1)
    assert not DelayRead.objects.exists()
    index_step(prod)
    read = DelayRead.objects.get()
    assert read.read_until >= before
    assert (read.broker_name, read.skipped_at) == ("broker-a", None)
    del queues.messages[SCHEDULE_TOPIC]
    index_step(prod)
    assert DelayRead.objects.get().read_until == read.read_until


def test_a_worker_that_was_overtaken_writes_nothing(prod, queues):
    queues.messages[SCHEDULE_TOPIC] = [retried(0)]
    index_step(prod)
    late = DelayQueue.objects.get()
    late.next_offset = 0
    assert write(prod, late, DelayReading(QueueReading((retried(0),), 1, 1))) == 0
    assert offsets() == [0]


def test_a_store_that_was_made_anew_is_read_from_its_beginning(prod, queues):
    queues.messages[SCHEDULE_TOPIC] = [retried(offset) for offset in range(3)]
    index_step(prod)
    queues.messages[SCHEDULE_TOPIC] = [retried(0, store_timestamp_ms=FAILED_MS + 60_000)]
    index_step(prod)
    assert offsets() == [0, 0, 1, 2]


def test_where_timers_do_the_delays_their_queue_is_read(prod, queues, now):
    seed.make_topic(prod, TIMER_TOPIC, now=now, queue_count=0)
    due = {Property.TIMER_OUT_MS: str(FAILED_MS + 5_000)}
    queues.messages[TIMER_TOPIC] = [retried(0, topic=TIMER_TOPIC, queue_id=0, properties=due)]
    assert index_step(prod) == 1
    assert FailedAttempt.objects.get().topic_name == TIMER_TOPIC


def test_a_broker_that_refuses_is_named_and_read_when_it_allows_it(prod, queues):
    queues.messages[SCHEDULE_TOPIC] = [retried(0)]
    queues.refusal = "not readable"
    assert index_step(prod) == 0
    assert "not readable" in DelayQueue.objects.get().problem
    queues.refusal = ""
    assert index_step(prod) == 1
    assert DelayQueue.objects.get().problem == ""


def test_a_broker_that_tells_no_due_times_is_still_read(prod, queues):
    queues.messages[SCHEDULE_TOPIC] = [retried(0)]
    refuse = lambda _, request: response(request, ResponseCode.REQUEST_CODE_NOT_SUPPORTED, "no")  # noqa: E731
    queues.broker.server.answers[RequestCode.QUERY_CONSUME_QUEUE] = refuse
    assert index_step(prod) == 1
    assert FailedAttempt.objects.get().due_at is None


def test_a_cluster_that_does_not_answer_costs_nothing_else(prod, brokers):
    prod.namesrv = "127.0.0.1:1"
    prod.save()
    prod.brokers.update(address="127.0.0.1:1")
    tasks.index_retries()
    assert DelayQueue.objects.count() == 0


def test_an_attempt_has_the_reason_that_the_runtime_kept_of_that_attempt(prod, queues, settings):
    settings.MQADMIN_NAMESRV = prod.namesrv
    kept = {"group": "billing", "topic": "orders", "failed_at": timezone.now(), "exception": "shop.Late", "text": "no"}
    MessageFailure.objects.create(**kept, message_id="UNIQ0", attempt=1, member="m")
    MessageFailure.objects.create(**kept, message_id="UNIQ1", attempt=2)
    told = {Property.FAILURE_CLASS: "shop.Told"}
    queues.messages[SCHEDULE_TOPIC] = [retried(0), retried(1), retried(2, properties=told)]
    index_step(prod)
    rows = FailedAttempt.objects.order_by("queue_offset")
    assert [row.failure_class for row in rows] == ["shop.Late", "", "shop.Told"]
    assert rows[0].failed_member == "m"


def test_old_ones_are_removed(prod, queues, monkeypatch):
    monkeypatch.setattr(indexing, "REMOVE_BATCH", 1)
    queues.messages[SCHEDULE_TOPIC] = [retried(offset) for offset in range(3)]
    index_step(prod)
    now = timezone.now()
    FailedAttempt.objects.filter(queue_offset=2).update(failed_at=now - KEPT_FOR + timedelta(minutes=1))
    assert indexing.remove_old(now) == 2
    assert offsets() == [2]
