"""How far dead-letter queues reach is noted as it is observed, and the index woken."""

from __future__ import annotations

import pytest

from mqadmin.clusters.models import TopicKind, TopicQueue
from mqadmin.deadletters.models import DeadLetterQueue
from mqadmin.observing.signals import TopicsChanged, publish, topics_changed
from tests.mqadmin.deadletters.conftest import TOPIC
from tests.support import console_rows as seed


@pytest.fixture
def topic(prod, now):
    return seed.make_topic(prod, TOPIC, now=now, kind=TopicKind.DEAD_LETTER, queue_count=1)


def observe(cluster, topic, now) -> None:
    publish(
        topics_changed,
        TopicsChanged(
            cluster=cluster, at=now, is_watched=True, topic_ids=[topic.pk], grown=[topic.name], named_group_ids=set()
        ),
    )


def test_a_queue_that_grew_is_noted_and_the_index_woken(prod, topic, now, woken, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        observe(prod, topic, now)
    row = DeadLetterQueue.objects.get()
    assert (row.topic_name, row.next_offset, row.end_offset) == (TOPIC, 0, topic.queues.get().max_offset)
    assert woken == [True]


def test_what_did_not_change_is_not_written_again(prod, topic, now, woken, django_capture_on_commit_callbacks):
    observe(prod, topic, now)
    with django_capture_on_commit_callbacks(execute=True):
        observe(prod, topic, now)
    assert woken == []


def test_other_topics_are_left_alone(prod, now, woken):
    observe(prod, seed.make_topic(prod, "orders", now=now), now)
    assert not DeadLetterQueue.objects.exists()


def test_a_topic_made_anew_begins_where_it_begins_now(prod, topic, now):
    DeadLetterQueue.objects.create(
        cluster=prod, topic_name=TOPIC, broker_name="broker-a", queue_id=0, next_offset=10**9, end_offset=10**9
    )
    TopicQueue.objects.filter(topic=topic).update(min_offset=0, max_offset=2)
    observe(prod, topic, now)
    row = DeadLetterQueue.objects.get()
    assert (row.next_offset, row.end_offset) == (0, 2)
