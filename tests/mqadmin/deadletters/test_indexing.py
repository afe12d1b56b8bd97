"""One row a message, whatever happens between reading and writing."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from consumer.models import MessageFailure
from mqadmin.deadletters import indexing, tasks
from mqadmin.deadletters.indexing import CLAIM_S, OTHER_FAILURES, claim, index_step, write
from mqadmin.deadletters.models import DeadLetter, DeadLetterQueue, Failure, FailureHour, KeptMessage
from mqadmin.deadletters.signals import dead_letters_indexed
from mqadmin.observing.gateway import QueueReading
from remoting.wire.headers.pull import COMMIT_OFFSET_FLAG
from remoting.wire.properties import Property
from tests.mqadmin.deadletters.conftest import TOPIC
from tests.support.dead_letter_brokers import dead_message


def offsets() -> list[int]:
    return list(DeadLetter.objects.order_by("queue_offset").values_list("queue_offset", flat=True))


def test_what_a_queue_holds_is_indexed_with_its_body_and_properties(prod, queue, queues):
    queues.messages[TOPIC] = [dead_message(offset) for offset in range(3)]
    assert index_step(prod) == 3
    assert offsets() == [0, 1, 2]
    first = DeadLetter.objects.select_related("kept", "failure").get(queue_offset=0)
    assert (first.group_name, first.message_id, first.origin_topic) == ("billing", "UNIQ0", "orders")
    assert bytes(first.kept.body) == b'{"id": 0}'
    assert first.kept.properties[Property.KEYS] == "order-0 k"
    assert (first.failure.dead_count, first.failure.shape) == (3, "JSON object: id number")
    queue.refresh_from_db()
    assert (queue.next_offset, queue.end_offset, queue.claimed_until, queue.problem) == (3, 3, None, "")


def test_one_that_does_not_say_why_it_failed_has_the_reason_that_the_runtime_kept(prod, queue, queues, settings):
    settings.MQADMIN_NAMESRV = prod.namesrv
    kept = {"group": "billing", "topic": "orders", "failed_at": timezone.now(), "attempt": 17, "member": "m"}
    MessageFailure.objects.create(**kept, message_id="UNIQ0", exception="shop.Late", text="no", listener="l")
    MessageFailure.objects.create(**kept, message_id="UNIQ1", exception="shop.Older")
    told = {Property.FAILURE_CLASS: "shop.Told"}
    queues.messages[TOPIC] = [dead_message(0), dead_message(1, properties=told), dead_message(2)]
    assert index_step(prod) == 3
    rows = DeadLetter.objects.order_by("queue_offset")
    assert [row.failure_class for row in rows] == ["shop.Late", "shop.Told", ""]
    assert (rows[0].failure_text, rows[0].failed_member, rows[0].failed_listener) == ("no", "m", "l")
    assert rows[0].failure.failure_class == "shop.Late"


def test_no_group_joins_and_nothing_is_committed(prod, queue, queues):
    queues.messages[TOPIC] = [dead_message(0)]
    index_step(prod)
    assert {(group, flag & COMMIT_OFFSET_FLAG) for group, _, flag in queues.pulled} == {("TOOLS_CONSUMER", 0)}


def test_it_goes_on_where_it_stopped_and_asks_nothing_where_there_is_nothing(prod, queue, queues):
    queues.messages[TOPIC] = [dead_message(offset) for offset in range(3)]
    index_step(prod)
    queues.pulled.clear()
    assert index_step(prod) == 0
    assert queues.pulled == []
    queues.messages[TOPIC] += [dead_message(3)]
    DeadLetterQueue.objects.update(end_offset=4)
    assert index_step(prod) == 1
    assert [offset for _, offset, _ in queues.pulled] == [3]


def test_a_long_queue_is_read_in_pages(prod, queue, queues):
    queues.messages[TOPIC] = [dead_message(offset) for offset in range(100)]
    DeadLetterQueue.objects.update(end_offset=100)
    assert index_step(prod) == 100
    assert Failure.objects.get().dead_count == 100
    assert sum(FailureHour.objects.values_list("dead_count", flat=True)) == 100


def test_a_queue_whose_beginning_retention_removed_is_read_from_what_is_left(prod, queue, queues):
    queues.messages[TOPIC] = [dead_message(offset) for offset in range(3)]
    queues.min_offset = 2
    assert index_step(prod) == 1
    assert offsets() == [2]


def test_two_workers_that_read_the_same_write_it_once(prod, queue):
    reading = QueueReading(tuple(dead_message(offset) for offset in range(3)), 3, 3)
    now = timezone.now()
    assert write(prod, queue, reading, now) == 3
    assert write(prod, queue, reading, now) == 0
    assert offsets() == [0, 1, 2]
    assert Failure.objects.get().dead_count == 3


def test_a_queue_that_is_claimed_is_left_to_its_worker_until_that_is_taken_for_dead(prod, queue, now):
    assert [one.pk for one in claim(prod, now)] == [queue.pk]
    assert claim(prod, now + timedelta(seconds=CLAIM_S - 1)) == []
    assert len(claim(prod, now + timedelta(seconds=CLAIM_S))) == 1


def test_a_topic_made_anew_is_indexed_from_its_beginning_beside_its_former_messages(prod, queue, queues):
    queues.messages[TOPIC] = [dead_message(offset) for offset in range(3)]
    index_step(prod)
    queues.messages[TOPIC] = [dead_message(0, store_timestamp_ms=1_800_000_000_000)]
    write(prod, DeadLetterQueue.objects.get(), QueueReading((), 1, 1), timezone.now())
    assert DeadLetterQueue.objects.get().next_offset == 0
    assert index_step(prod) == 1
    assert offsets() == [0, 0, 1, 2]


def test_a_broker_that_refuses_is_named_with_its_words_and_asked_again_later(prod, queue, queues, now):
    queues.refusal = "the topic[%DLQ%billing] pulling message is forbidden"
    assert index_step(prod) == 0
    queue.refresh_from_db()
    assert "forbidden" in queue.problem
    assert claim(prod, now) == []
    queues.refusal = ""
    queues.messages[TOPIC] = [dead_message(offset) for offset in range(3)]
    DeadLetterQueue.objects.update(claimed_until=now)
    assert index_step(prod) == 3
    queue.refresh_from_db()
    assert queue.problem == ""


def test_a_broker_that_is_away_is_named(prod, queue, brokers):
    brokers.vanish("broker-a")
    assert index_step(prod) == 0
    queue.refresh_from_db()
    assert "broker-a" in queue.problem or prod.brokers.get().address in queue.problem


def test_a_broker_that_is_not_known_any_more_is_named(prod, queue):
    prod.brokers.all().delete()
    assert index_step(prod) == 0
    queue.refresh_from_db()
    assert queue.problem == "broker broker-a is not known any more"


def test_failures_of_one_group_are_bounded_and_the_rest_counts_as_one(prod, queue, monkeypatch):
    monkeypatch.setattr(indexing, "FAILURES_MAX", 2)
    messages = tuple(dead_message(offset, properties={Property.TAGS: f"tag{offset}"}) for offset in range(5))
    assert write(prod, queue, QueueReading(messages, 5, 5), timezone.now()) == 5
    counts = dict(Failure.objects.values_list("identity", "dead_count"))
    assert len(counts) == 3
    assert counts[OTHER_FAILURES] == 3


def test_counts_follow_the_hours_in_which_messages_died(prod, queue):
    hour_ms = 3_600_000
    messages = tuple(
        dead_message(offset, store_timestamp_ms=1_700_000_000_000 + offset * hour_ms) for offset in range(3)
    )
    write(prod, queue, QueueReading(messages, 3, 3), timezone.now())
    assert list(FailureHour.objects.values_list("dead_count", flat=True)) == [1, 1, 1]
    failure = Failure.objects.get()
    assert failure.last_dead_at - failure.first_dead_at == timedelta(hours=2)


def test_who_wants_to_know_is_told_within_the_transaction(prod, queue):
    events = []

    def note(event, **_):
        events.append((event.cluster.name, event.group_name, DeadLetter.objects.count()))

    dead_letters_indexed.connect(note)
    try:
        write(prod, queue, QueueReading((dead_message(0),), 1, 1), timezone.now())
    finally:
        dead_letters_indexed.disconnect(note)
    assert events == [("prod", "billing", 1)]


def test_the_task_takes_all_clusters(prod, queue, queues):
    queues.messages[TOPIC] = [dead_message(offset) for offset in range(3)]
    tasks.index_dead_letters()
    assert KeptMessage.objects.count() == 3
