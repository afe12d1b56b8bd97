"""Bodies as people read them, and who may not."""

from __future__ import annotations

import pytest
from django.utils import timezone

from mqadmin.deadletters.bodies import DUMP_BYTES_MAX, SHOWN_BYTES_MAX, BodyKind, body_of, hex_dump, shown
from mqadmin.deadletters.indexing import write
from mqadmin.deadletters.models import DeadLetter
from mqadmin.observing.gateway import QueueReading
from mqadmin.people.masking import read_rules
from mqadmin.people.roles import Role
from tests.mqadmin.deadletters.conftest import TOPIC
from tests.support.dead_letter_brokers import dead_message


@pytest.mark.parametrize(
    ("body", "kind", "text"),
    [
        (b"", BodyKind.EMPTY, ""),
        (b'{"id":17}', BodyKind.JSON, '{\n  "id": 17\n}'),
        (b"good morning", BodyKind.TEXT, "good morning"),
        (b"<script>", BodyKind.TEXT, "<script>"),
    ],
)
def test_a_body_is_shown_as_what_it_is(body, kind, text):
    assert (shown(body).kind, shown(body).text) == (kind, text)


def test_bytes_are_shown_in_hexadecimal():
    assert hex_dump(b"\x00\xffabc") == "00000000  00 ff 61 62 63                                   ..abc"
    body = shown(b"\xff" * (DUMP_BYTES_MAX + 1))
    assert (body.kind, body.is_cut) == (BodyKind.BINARY, True)


def test_a_long_text_is_cut_between_characters():
    body = shown("早".encode() * SHOWN_BYTES_MAX)
    assert body.is_cut
    assert body.text == "早" * (SHOWN_BYTES_MAX // 3)


@pytest.fixture
def dead(prod, queue) -> DeadLetter:
    write(prod, queue, QueueReading((dead_message(0),), 1, 1), timezone.now())
    return DeadLetter.objects.select_related("kept").get()


def test_the_kept_body_is_shown_though_the_broker_is_gone(dead, brokers):
    brokers.vanish("broker-a")
    assert body_of(dead, Role.VIEWER).kind == BodyKind.JSON


def test_one_that_was_too_large_is_asked_for(dead, queues):
    dead.kept.body = None
    queues.messages[TOPIC] = [dead_message(0, body=b"large")]
    assert body_of(dead, Role.VIEWER).text == "large"
    queues.messages[TOPIC] = [dead_message(0, commit_log_offset=5)]
    gone = body_of(dead, Role.VIEWER)
    assert (gone.kind, gone.note) == (BodyKind.GONE, "the broker does not have it any more")


def test_a_broker_that_is_away_is_named(dead, brokers):
    dead.kept.body = None
    brokers.vanish("broker-a")
    gone = body_of(dead, Role.VIEWER)
    assert gone.kind == BodyKind.GONE
    assert gone.note


@pytest.mark.parametrize("pattern", ["orders", "%DLQ%*"])
def test_a_role_that_may_not_see_the_origin_topic_sees_no_body(dead, settings, pattern):
    settings.MQADMIN_MASKED = read_rules(f"viewer:{pattern}")
    assert body_of(dead, Role.VIEWER).kind == BodyKind.MASKED
    assert body_of(dead, None).kind == BodyKind.MASKED
    assert body_of(dead, Role.OPERATOR).kind == BodyKind.JSON
