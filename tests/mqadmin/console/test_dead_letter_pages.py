"""Dead letters on pages: failures, the messages of one, one message."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from urllib.parse import parse_qs, urlsplit

import pytest

from mqadmin.clusters.models import Topic, TopicQueue
from mqadmin.deadletters import matching_rows
from mqadmin.deadletters.indexing import hour_of
from mqadmin.deadletters.models import DeadLetter, DeadLetterQueue, Failure
from mqadmin.deadletters.retention import remove_old
from mqadmin.people.masking import read_rules
from mqadmin.retries.models import FailedAttempt
from remoting.wire.properties import Property
from tests.mqadmin.console.pages import names_in, text_of
from tests.support import console_rows as seed
from tests.support.dead_letter_brokers import dead_message

TIMEOUT = {Property.FAILURE_CLASS: "PaymentTimeout", Property.FAILURE_TEXT: "no answer after 30 s"}


@pytest.fixture
def dead(cluster, group, now):
    messages = [
        *(dead_message(offset, properties=TIMEOUT) for offset in range(3)),
        dead_message(3, body=b"<script>alert(1)</script>", properties={Property.TAGS: "<b>odd</b>"}),
    ]
    seed.make_dead_letters(cluster, "billing", messages, now=now)
    return cluster


def test_failures_of_a_cluster_are_listed_with_what_they_are(http, dead):
    page = http.get("/clusters/local/deadletters/")
    text = text_of(page)
    assert "4 dead letters of 2 failures" in text
    assert "PaymentTimeout : no answer after 30 s" in text
    assert "no reason told text" in text
    assert len(names_in(page)) == 2
    assert "<b>odd</b>" not in page.content.decode()


def test_a_cluster_without_any_says_so(http, cluster):
    assert "No message has died." in text_of(http.get("/clusters/local/deadletters/"))


def test_the_tab_of_a_group_shows_its_own(http, dead, now):
    seed.make_dead_letters(dead, "mail", [dead_message(0, topic="%DLQ%mail")], now=now)
    assert "4 dead letters of 2 failures" in text_of(http.get("/clusters/local/groups/billing/deadletters/"))
    assert "5 dead letters of 3 failures" in text_of(http.get("/clusters/local/deadletters/"))


@pytest.mark.parametrize(
    ("text", "found"),
    [("UNIQ1", 1), ("order-2", 1), ("k", 4), ("PaymentTimeout", 3), ("no answer", 3), ("orders", 4), ("nothing", 0)],
)
def test_dead_letters_are_found_by_id_key_topic_and_error(http, dead, text, found):
    assert len(names_in(http.get("/clusters/local/deadletters/", {"q": text}))) == found


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"attempts": "16"}, 4),
        ({"attempts": "0"}, 0),
        ({"user_property": "tenant=Acme"}, 1),
        ({"user_property": "tenant=other"}, 0),
        ({"born_since": "2023-11-14", "born_until": "2023-11-14"}, 5),
        ({"born_until": "2023-11-13"}, 0),
    ],
)
def test_dead_letters_are_found_by_attempts_property_and_first_sending(http, dead, now, query, found):
    other = dead_message(9, reconsume_times=3, properties={"tenant": "acme", **TIMEOUT})
    seed.make_dead_letters(dead, "billing", [other], now=now)
    page = http.get("/clusters/local/deadletters/", query)
    assert len(names_in(page)) == found
    html = page.content.decode()
    assert '<details class="further-fields" open>' in html
    for name, value in query.items():
        assert f'name="{name}" value="{value}"' in html
    if found:
        # What may be done with all that were found, and the export, select the same.
        for link in ("replay/", "archive/", "export?format=csv"):
            (address,) = {one for one in re.findall(r'href="([^"]+)"', html) if link in one}
            assert set(query) <= set(parse_qs(urlsplit(unescape(address)).query))
    failure = Failure.objects.get(attempt_count=3)
    of_failure = http.get(f"/clusters/local/deadletters/failures/{failure.pk}/", query)
    assert len(names_in(of_failure)) == (found > 0 and query.get("attempts") != "16")


@pytest.mark.parametrize("query", [{"attempts": "x"}, {"attempts": "-1"}, {"attempts": "9" * 30}, {"born_since": "x"}])
def test_fields_that_are_garbage_are_passed_over(http, dead, query):
    page = http.get("/clusters/local/deadletters/", query)
    assert "4 dead letters of 2 failures" in text_of(page)


def test_the_page_of_a_topic_counts_its_dead_letters_and_leads_to_their_failures(http, dead, now):
    seed.make_topic(dead, "returns", now=now)
    seed.make_dead_letters(dead, "mail", [dead_message(0, properties={Property.RETRY_TOPIC: "other"})], now=now)
    html = http.get("/clusters/local/topics/orders/").content.decode()
    (address,) = re.findall(r'data-cell="dead"><a href="([^"]+)">4</a>', html)
    page = http.get(unescape(address))
    assert len(names_in(page)) == 2
    assert "dead letters 0" in text_of(http.get("/clusters/local/topics/returns/"))


def test_a_page_that_could_not_look_through_all_says_so_and_goes_on(http, dead, monkeypatch):
    for name in ("LOOKED_UP_AT_FIRST", "LOOKED_UP_AT_ONCE", "JUDGED_MAX"):
        monkeypatch.setattr(matching_rows, name, 2)
    monkeypatch.setattr(matching_rows, "FEW", 0)
    DeadLetter.objects.filter(queue_offset=0).update(dead_at=DeadLetter.objects.all()[0].dead_at - timedelta(days=3))
    day = DeadLetter.objects.get(queue_offset=0).dead_at.date().isoformat()
    page = http.get("/clusters/local/deadletters/", {"q": "orders", "until": day})
    assert "No dead letter matches so far" in text_of(page)
    older = re.search(r'<a href="([^"]+)" rel="next">', page.content.decode())[1]
    page = http.get(f"/clusters/local/deadletters/{unescape(older)}")
    assert len(names_in(page)) == 1
    assert "Older” goes on" in text_of(page)


def test_a_failure_shows_its_messages_page_by_page(http, dead, now):
    more = [dead_message(offset, properties=TIMEOUT) for offset in range(4, 60)]
    seed.make_dead_letters(dead, "billing", more, now=now)
    failure = Failure.objects.get(failure_class="PaymentTimeout")
    address = f"/clusters/local/deadletters/failures/{failure.pk}/"
    first = http.get(address)
    assert "dead 59" in text_of(first)
    assert len(names_in(first)) == 50
    second = http.get(address + first.context["older_url"])
    assert len(names_in(second)) == 9
    assert not set(names_in(first)) & set(names_in(second))


def test_a_dead_letter_shows_its_body_its_properties_and_its_way(http, dead):
    message = DeadLetter.objects.get(queue_offset=1)
    page = http.get(f"/clusters/local/deadletters/{message.pk}/")
    text = text_of(page)
    assert '"id": 1' in text
    assert "UNIQ1" in text
    assert "sent to orders by 10.0.0.7:4" in text
    assert "dead in group billing after 16 attempts" in text
    assert "broker broker-a, queue 0, offset 1" in text


def test_a_body_is_never_markup(http, dead):
    message = DeadLetter.objects.get(queue_offset=3)
    assert b"<script>alert" not in http.get(f"/clusters/local/deadletters/{message.pk}/").content


def test_a_body_that_a_role_may_not_see_is_not_on_the_page(http, dead, settings):
    settings.MQADMIN_MASKED = read_rules("admin:orders")
    message = DeadLetter.objects.get(queue_offset=1)
    page = http.get(f"/clusters/local/deadletters/{message.pk}/")
    assert "Bodies of this topic are hidden from your role." in text_of(page)
    assert '"id": 1' not in text_of(page)


def test_a_queue_that_cannot_be_read_is_named_with_the_reason(http, dead):
    DeadLetterQueue.objects.update(end_offset=9, problem="the topic[%DLQ%billing] pulling message is forbidden")
    text = text_of(http.get("/clusters/local/deadletters/"))
    assert "5 more are not indexed yet." in text
    assert "%DLQ%billing on broker-a: the topic[%DLQ%billing] pulling message is forbidden" in text


@pytest.mark.parametrize("path", ["deadletters/999/", "deadletters/failures/999/", "groups/nobody/deadletters/"])
def test_what_is_not_there_is_a_404(http, dead, path):
    assert http.get(f"/clusters/local/{path}").status_code == 404


def test_one_of_another_cluster_is_not_there(http, dead, now):
    seed.make_cluster("other", now=now)
    message = DeadLetter.objects.first()
    assert http.get(f"/clusters/other/deadletters/{message.pk}/").status_code == 404


@pytest.mark.parametrize("cursor", ["garbage", "2026-01-01_x", "_1", "2026-01-01T00:00:00_1"])
def test_a_cursor_that_is_none_begins_at_the_newest(http, dead, cursor):
    assert len(names_in(http.get("/clusters/local/deadletters/", {"before": cursor}))) == 2


def test_queries_do_not_grow_with_the_rows(http, dead, now, django_assert_max_num_queries):
    with django_assert_max_num_queries(25):
        http.get("/clusters/local/deadletters/")


def test_a_failure_is_archived_from_its_page_and_found_among_the_archived(http, dead):
    failure = Failure.objects.get(failure_class="PaymentTimeout")
    address = f"/clusters/local/deadletters/failures/{failure.pk}/"
    assert f"{address}archive/" in http.get(address).content.decode()
    preview = http.get(f"{address}archive/")
    assert "PaymentTimeout: no answer after 30 s" in text_of(preview)
    http.post(f"{address}archive/", {"failure": failure.pk, "key": "k"})
    assert len(names_in(http.get("/clusters/local/deadletters/"))) == 1
    assert len(names_in(http.get("/clusters/local/deadletters/", {"archived": "1"}))) == 1
    page = http.get(address)
    assert "This failure is archived" in text_of(page)
    assert len(names_in(page)) == 3
    assert f"{address}restore/" in page.content.decode()


def test_failures_are_found_by_owner(http, dead):
    Failure.objects.filter(failure_class="PaymentTimeout").update(owner="payments", note="<i>known</i>")
    page = http.get("/clusters/local/deadletters/", {"owner": "payments"})
    assert len(names_in(page)) == 1
    assert "<i>known" not in page.content.decode()
    assert "No failure matches" in text_of(http.get("/clusters/local/deadletters/", {"owner": "nobody"}))


def test_bodies_are_searched_for_who_may_see_them(http, dead, settings):
    address = "/clusters/local/deadletters/"
    assert len(names_in(http.get(address, {"body": "alert("}))) == 1
    assert "three characters or more" in text_of(http.get(address, {"body": "al"}))
    assert len(names_in(http.get(address, {"q": "order-2", "until": "2023-11-14"}))) == 1
    assert "No dead letter matches" in text_of(http.get(address, {"since": "2023-11-15"}))
    settings.MQADMIN_MASKED = read_rules("admin:orders")
    assert "No dead letter matches" in text_of(http.get(address, {"body": "alert("}))


def test_a_queue_that_may_only_be_written_has_a_link_that_opens_it(http, dead, now):
    DeadLetterQueue.objects.update(end_offset=9, problem="the topic[%DLQ%billing] pulling message is forbidden")
    topic = seed.make_topic(dead, "%DLQ%billing", now=now)
    link = "/clusters/local/topics/%25DLQ%25billing/permission/?perm=6"
    assert link not in http.get("/clusters/local/deadletters/").content.decode()
    Topic.objects.filter(pk=topic.pk).update(perm=2)
    assert link in http.get("/clusters/local/deadletters/").content.decode()
    assert link in http.get("/clusters/local/groups/billing/deadletters/").content.decode()


@pytest.mark.parametrize(("min_offset", "is_there"), [(0, True), (2, False)])
def test_a_dead_letter_that_the_broker_has_removed_says_so(http, dead, now, min_offset, is_there):
    topic = seed.make_topic(dead, "%DLQ%billing", now=now)
    TopicQueue.objects.update_or_create(
        topic=topic,
        broker_name="broker-a",
        queue_id=0,
        defaults={"min_offset": min_offset, "max_offset": 4, "seen_at": now},
    )
    message = DeadLetter.objects.get(queue_offset=1)
    text = text_of(http.get(f"/clusters/local/deadletters/{message.pk}/"))
    assert ("no longer on the broker" not in text) is is_there
    assert '"id": 1' in text


def test_failures_are_grouped_by_a_field_and_each_group_leads_to_its_own(http, dead):
    page = http.get("/clusters/local/deadletters/", {"by": "class"})
    assert "PaymentTimeout 3 75 % 1" in text_of(page)
    assert len(names_in(http.get("/clusters/local/deadletters/", {"by": "class", "value": "PaymentTimeout"}))) == 1
    assert len(names_in(http.get("/clusters/local/deadletters/", {"by": "class", "value": ""}))) == 1
    assert "PaymentTimeout 3 75 % 1" in text_of(http.get("/clusters/local/groups/billing/deadletters/?by=class"))


@pytest.mark.parametrize(("days_ago", "is_known"), [(2, True), (29, True), (31, False)])
def test_the_first_hours_of_a_failure_are_shown_while_they_are_kept(http, dead, now, days_ago, is_known):
    failure = Failure.objects.get(failure_class="PaymentTimeout")
    began = now - timedelta(days=days_ago)
    Failure.objects.filter(pk=failure.pk).update(first_dead_at=began)
    failure.hours.update(hour=hour_of(began))
    # Messages died of it until now, so that it is there still.
    failure.dead_letters.update(dead_at=now)
    remove_old(now)
    page = http.get(f"/clusters/local/deadletters/failures/{failure.pk}/").content.decode()
    assert ("3 in the first 24 hours" in page) == is_known
    assert ("first 24 hours" in page) == is_known


def test_a_failure_shows_what_changed_when_it_began(http, dead, group, now):
    failure = Failure.objects.get(failure_class="PaymentTimeout")
    address = f"/clusters/local/deadletters/failures/{failure.pk}/"
    text = text_of(http.get(address))
    assert "Rebalances of that time are not kept any more." in text
    assert "Nothing was observed" not in text
    assert "share of all 75 %" in text

    # A day ago: its first attempt failed two hours before it died.
    died, failed = now - timedelta(hours=20), now - timedelta(hours=22)
    Failure.objects.filter(pk=failure.pk).update(first_dead_at=died)
    failure.dead_letters.filter(queue_offset=0).update(dead_at=died)
    FailedAttempt.objects.create(
        cluster=dead,
        group_name="billing",
        broker_name="broker-a",
        topic_name="SCHEDULE_TOPIC_XXXX",
        queue_id=3,
        queue_offset=0,
        message_id="UNIQ0",
        origin_topic="orders",
        attempt_count=1,
        failed_at=failed,
    )
    text = text_of(http.get(address))
    assert "Nothing was observed" in text
    assert "first 24 hours" not in text
    seed.make_event(group, "joined", at=failed - timedelta(minutes=2), client_id="<b>new</b>")
    seed.make_event(group, "left", at=failed + timedelta(minutes=2), client_id="10.0.3.7@1")
    page = http.get(address)
    assert re.search("joined .* The first attempt failed. .* 10.0.3.7@1", text_of(page))
    assert "The first message died." not in text_of(page)
    assert "<b>new" not in page.content.decode()
    assert "/clusters/local/groups/billing/rebalances/" in page.content.decode()
