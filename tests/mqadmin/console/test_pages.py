"""Pages by Django's own client: who may see them, what they say, and what strangers' names can't do to them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from html import unescape
from types import MappingProxyType
from typing import Any
from uuid import UUID

import pytest
from django.test import Client
from django.urls import get_resolver, resolve, reverse

from consumer.models import DeliveryHour
from mqadmin.clusters.held_queues import HeldQueue
from mqadmin.clusters.models import Cluster, Group, MemberProgress
from mqadmin.clusters.models.member import ADDRESS_CHARS_MAX
from mqadmin.lag import sampling
from remoting.wire.bodies.message_queue import MessageQueue
from tests.support import console_rows as seed

HOSTILE = "<script>alert(1)</script>\"'&{{ 7|add:7 }}"
OPEN_PAGES = {"login", "logout", "theme", "language", "account_login", "account_inactive"}
OPEN_PAGES |= {"openid_connect_login", "openid_connect_callback"}
# Its address is signed, and is the key.
OPEN_PAGES |= {"mailed_report"}
GROUP_TABS = ("group", "group_lag", "group_members", "group_subscriptions", "group_rebalances", "group_dead_letters")
EVERY_PAGE = [
    ("overview", []),
    ("cluster", ["local"]),
    ("broker", ["local", "broker-a"]),
    ("topics", ["local"]),
    ("topic", ["local", "orders"]),
    ("groups", ["local"]),
    *((tab, ["local", "billing"]) for tab in GROUP_TABS),
    ("dead_letters", ["local"]),
    ("replays", ["local"]),
    ("rebalances", ["local"]),
]
# What addresses name; there is a cluster, a broker, a topic and a group.
ARGUMENTS = {
    "cluster": "local",
    "name": "local",
    "of": "local",
    "broker": "broker-a",
    "group": "billing",
    "topic": "orders",
    "person": "ann",
    "job": "nightly",
    "token": "nightly",
    "worker": "loops-1",
    "run": UUID(int=1),
    "batch": UUID(int=2),
    "number": 1,
    "failure": 1,
    "message": 1,
    "replay": "1",
    "rule": "nightly",
    "day": "2026-01-02",
    "channel": "ops",
    "silence": "nights",
    "alert": 1,
    "file": 1,
    "language": "zh-hans",
}


def address_of(name: str, arguments: Mapping[str, object] = MappingProxyType(ARGUMENTS)) -> str:
    """Returns the address of that name."""
    wanted = get_resolver().reverse_dict[name][0][0][1]
    return reverse(name, kwargs={key: arguments[key] for key in wanted})


def text_of(response) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


def test_every_page_answers_who_is_logged_in_and_runs_no_inline_script_and_no_inline_style(http, group):
    for name, args in EVERY_PAGE:
        response = http.get(reverse(name, args=args))
        assert response.status_code == 200, name
        assert "text/html" in response["Content-Type"], name
        html = response.content.decode()
        assert "script-src 'self'" in response["Content-Security-Policy"], name
        assert not re.search(r"<script(?![^>]*\bsrc=)", html), name
        assert not re.search(r"\sstyle=|<style|\son\w+=", html), name


def test_no_address_is_answered_by_the_page_of_another():
    """A name may hold slashes: what stands below a name has to come before it in `urls.py`."""
    for name in get_resolver().reverse_dict:
        if isinstance(name, str) and name not in OPEN_PAGES:
            assert resolve(address_of(name)).url_name == name.rpartition(":")[2]


def test_every_page_but_the_log_in_asks_for_it(db):
    names = {name for name in get_resolver().reverse_dict if isinstance(name, str)} - OPEN_PAGES
    assert {name for name, _ in EVERY_PAGE} <= names
    for name in names:
        response = Client().get(address_of(name))
        assert response.status_code == 302, name
        assert response["Location"].startswith("/login/?next="), name


def test_what_is_not_known_is_answered_with_a_page_that_helps(http, group):
    for name, args in (
        ("cluster", ["nowhere"]),
        ("groups", ["nowhere"]),
        ("topics", ["nowhere"]),
        ("rebalances", ["nowhere"]),
        ("dead_letters", ["nowhere"]),
        ("replays", ["nowhere"]),
        ("replay", ["local", "1"]),
        ("topic", ["local", "nothing"]),
        *((tab, ["local", "nobody"]) for tab in GROUP_TABS),
    ):
        response = http.get(reverse(name, args=args))
        assert response.status_code == 404, name
        assert "To the overview" in text_of(response), name


def test_htmx_gets_the_live_region_alone_and_nothing_is_cached(http, group):
    for name, args in EVERY_PAGE:
        response = http.get(reverse(name, args=args), headers={"HX-Request": "true"})
        html = response.content.decode().strip()
        assert html.startswith("<div id="), name
        assert "<html" not in html, name
        assert "HX-Request" in response["Vary"], name
        assert "no-cache" in response["Cache-Control"], name


@pytest.mark.parametrize(
    "name",
    [
        HOSTILE,
        "a/b",
        *(pytest.param(one, marks=pytest.mark.sweep) for one in ("../..", "x" * 255, "line\nbreak", "100%", "队列")),
    ],
    ids=repr,
)
@pytest.mark.slow
def test_names_from_strangers_are_text_everywhere(http, cluster, now, name):
    seed.make_topic(cluster, name, now=now)
    group = seed.make_group(cluster, name, now=now, verdict="stalled", lag=1, verdict_rule="offset_stands")
    difference = seed.make_difference(name, name, since=now, others=[name])
    seed.make_member(group, name, now=now, address=name[:ADDRESS_CHARS_MAX], language="JAVA", differences=[difference])
    seed.make_queue_offset(group, name, 0, now=now, owner=name)
    seed.make_subscription(group, name, name, now=now, client_id=name)
    seed.make_event(group, "joined", at=now, client_id=name, member_count=1)
    move = {"topic": name, "broker": name, "queue_id": 0, "from": "", "to": name}
    seed.make_event(group, "queues_moved", at=now, moves=[move])
    pages = [
        ("overview", []),
        ("cluster", ["local"]),
        ("topics", ["local"]),
        ("groups", ["local"]),
        ("rebalances", ["local"]),
        ("topic", ["local", name]),
        *((tab, ["local", name]) for tab in GROUP_TABS),
    ]
    for page, args in pages:
        response = http.get(reverse(page, args=args))
        assert response.status_code in (200, 404 if ".." in name else 200), page
        assert b"<script>alert" not in response.content, page


@pytest.mark.slow
def test_how_often_the_database_is_asked_does_not_grow_with_the_rows(http, group, now, django_assert_max_num_queries):
    for number in range(30):
        further = seed.make_group(group.cluster, f"g{number:02}", now=now, verdict="slow", lag=number)
        seed.make_queue_offset(further, "orders", 0, now=now)
        seed.make_topic(group.cluster, f"t{number:02}", now=now)
        seed.make_member(group, f"member-{number}", now=now)
        seed.make_queue_offset(group, "orders", 1 + number, now=now, owner=f"member-{number}")
        seed.make_event(further, "joined", at=now - timedelta(minutes=number), client_id=f"c{number}")
    for name, args in EVERY_PAGE:
        with django_assert_max_num_queries(30, info=name):
            assert http.get(reverse(name, args=args)).status_code == 200


class TestOverview:
    def test_says_what_needs_somebody_first(self, http, group):
        text = text_of(http.get("/"))
        assert "1 thing needs attention" in text
        assert text.index("billing") < text.index("brokers")

    def test_says_when_nothing_does(self, http, cluster, now):
        seed.make_group(cluster, "index", now=now)
        text = text_of(http.get("/"))
        assert "Nothing needs attention" in text
        assert "The one broker answers. One consumer group; it needs no attention." in text

    def test_a_cluster_that_is_silent_needs_somebody(self, http, now):
        seed.make_cluster("far", now=now, state="unreachable", last_error="10.9.9.9:9876: connection refused")
        text = text_of(http.get("/"))
        assert "1 thing needs attention" in text
        assert "10.9.9.9:9876: connection refused" in text

    def test_a_scheduler_that_no_worker_runs_needs_somebody(self, http, group):
        group.cluster.brokers.update(scheduler_driver="")
        text = text_of(http.get("/"))
        assert "2 things need attention" in text
        assert "scheduler of broker-a" in text

    def test_an_empty_cluster_is_shown_its_first_steps(self, http, cluster):
        text = text_of(http.get("/"))
        assert "local is ready for its first message" in text
        assert "127.0.0.1:9876" in text

    def test_a_cluster_not_asked_yet_is_waited_for(self, http, now):
        seed.make_cluster("local", now=now, state="new", last_synced_at=None)
        assert "Waiting for the first answer" in text_of(http.get("/"))

    def test_without_a_cluster_it_says_how_one_comes(self, http):
        text = text_of(http.get("/"))
        assert "No cluster yet" in text
        assert "manage.py up" in text


class TestCluster:
    def test_says_which_worker_runs_the_scheduler_and_how_late(self, http, cluster):
        text = text_of(http.get(reverse("cluster", args=["local"])))
        assert "scheduler@shop-1" in text
        assert "14 ms" in text

    def test_alarms_when_no_worker_runs_the_scheduler(self, http, cluster):
        cluster.brokers.update(scheduler_driver="", scheduler_late_ms=None)
        text = text_of(http.get(reverse("cluster", args=["local"])))
        assert "No worker runs the scheduler" in text
        assert "NOT RUNNING" in text
        assert "celery -A mqadmin worker -Q scheduler" in text

    def test_says_how_late_each_kind_of_work_is(self, http, cluster):
        html = http.get(reverse("cluster", args=["local"])).content.decode()
        rows = dict(re.findall(r'<tr data-row="broker-a/([a-z]+)">(.*?)</tr>', html, re.S))
        assert list(rows) == ["delay", "timer", "transaction"]
        for word in ("delay levels and retries", "OK", "31", "in 9 m", "14 ms"):
            assert word in rows["delay"], word
        for word in ("timed messages", "LATE", "4.2 s"):
            assert word in rows["timer"], word
        assert "none yet" in rows["transaction"]

    def test_says_what_polling_costs_where_it_is_polled(self, http, cluster):
        assert "Polled every" not in text_of(http.get(reverse("cluster", args=["local"])))
        Cluster.objects.update(kind="mixed", cycle_request_count=1204, cycle_seconds=1.26)
        text = text_of(http.get(reverse("cluster", args=["local"])))
        assert "Polled every 15 s: the last cycle took 1,204 requests and 1.3 s." in text
        assert "It cannot be followed, because some of its brokers are Apache’s." in text

    def test_shows_no_scheduler_where_the_broker_has_none_of_ours(self, http, cluster):
        cluster.brokers.update(scheduler_driver=None)
        assert "run by" not in text_of(http.get(reverse("cluster", args=["local"])))

    def test_says_what_to_do_without_a_broker(self, http, now):
        seed.make_cluster("bare", now=now)
        assert "manage.py runbroker" in text_of(http.get(reverse("cluster", args=["bare"])))


class TestGroups:
    def names(self, response) -> list[str]:
        return re.findall(r'<tr data-row="([^"]+)"', response.content.decode())

    @pytest.fixture
    def some(self, cluster, now) -> Cluster:
        seed.make_group(cluster, "calm", now=now, lag=0)
        seed.make_group(cluster, "busy", now=now, lag=900, verdict="slow")
        seed.make_group(cluster, "dark", now=now, lag=None, verdict="unknown", member_count=None)
        return cluster

    def test_what_needs_somebody_comes_first(self, http, some):
        assert self.names(http.get(reverse("groups", args=["local"]))) == ["busy", "dark", "calm"]

    def test_the_address_sorts_and_the_unknown_come_last(self, http, some):
        url = reverse("groups", args=["local"])
        assert self.names(http.get(url, {"sort": "-lag"})) == ["busy", "calm", "dark"]
        assert self.names(http.get(url, {"sort": "lag"})) == ["calm", "busy", "dark"]
        assert self.names(http.get(url, {"sort": "-name"})) == ["dark", "calm", "busy"]

    def test_the_address_filters_by_name_and_status(self, http, some):
        url = reverse("groups", args=["local"])
        assert self.names(http.get(url, {"q": "BUS"})) == ["busy"]
        assert self.names(http.get(url, {"status": "ok"})) == ["calm"]
        assert "No group matches the filter" in text_of(http.get(url, {"q": "nope"}))

    def test_the_unknown_is_never_a_zero(self, http, some):
        row = re.search(
            r'<tr data-row="dark">(.*?)</tr>', http.get(reverse("groups", args=["local"])).content.decode(), re.S
        )
        assert row
        cells = re.findall(r'data-cell="(\w+)">(.*?)</td>', row[1], re.S)
        assert "unknown" in dict(cells)["lag"]
        assert "unknown" in dict(cells)["members"]

    def test_pages_are_forty_long_and_linked(self, http, cluster, now):
        for number in range(45):
            seed.make_group(cluster, f"g{number:02}", now=now, lag=None)
        url = reverse("groups", args=["local"])
        first = http.get(url, {"sort": "name"})
        assert len(self.names(first)) == 40
        assert "page 1 of 2" in text_of(first)
        assert b"?sort=name&amp;page=2" in first.content
        assert self.names(http.get(url, {"sort": "name", "page": 2})) == [f"g{number}" for number in range(40, 45)]

    def test_an_empty_list_says_how_the_first_one_comes(self, http, cluster):
        assert "manage.py runconsumer" in text_of(http.get(reverse("groups", args=["local"])))


class TestGroup:
    def test_says_the_verdict_with_its_reason_and_shows_the_queue(self, http, group):
        text = text_of(http.get(reverse("group", args=["local", "billing"])))
        assert "STALLED" in text
        assert "committed offset has not moved, though 1 member is online" in text
        assert "≥ 21 m 0" in text
        for figure in ("12,049", "120,331", "132,380", "10.0.3.7@2211#1"):
            assert figure in text

    def test_a_group_without_queues_says_when_they_come(self, http, cluster, now):
        seed.make_group(cluster, "fresh", now=now, lag=None)
        text = text_of(http.get(reverse("group", args=["local", "fresh"])))
        assert "No queues yet" in text

    def test_says_what_is_in_flight_where_a_member_told_it(self, http, group, now):
        pages = [reverse(name, args=["local", "billing"]) for name in ("group", "group_members")]
        for page in pages:
            html = http.get(page).content.decode()
            assert html.count("What is in flight is not known: no member has told it yet.") == 1
            assert "in-flight" not in html
        held = HeldQueue(MessageQueue("orders", "broker-a", 0), 120_331, 0, 32).as_row()
        told_at = now - timedelta(seconds=9)
        MemberProgress.objects.create(member=group.members.get(), told_at=told_at, queues=[held])
        for page in pages:
            html = http.get(page).content.decode()
            cell = re.search(r'data-cell="in-flight">(.*?)</td>', html)
            assert cell
            assert re.sub("<[^>]+>", "", cell[1]).split()[0] == "32"
            assert "What is in flight is not known" not in html

    def test_queues_stand_below_their_topic_and_name_brokers_only_where_several_have_them(self, http, group, now):
        def names() -> list[str]:
            html = http.get(reverse("group", args=["local", "billing"])).content.decode()
            table = html[html.index('id="queues"') : html.index("</table>")]
            return [" ".join(re.sub("<[^>]+>", "", one).split()) for one in re.findall("<th scope=.row.*?</th>", table)]

        assert names() == ["orders on broker-a", "0"]
        seed.make_queue_offset(group, "%RETRY%billing", 0, now=now)
        elsewhere = seed.make_queue_offset(group, "orders", 1, now=now)
        elsewhere.broker_name = "broker-b"
        elsewhere.save()
        assert names() == ["orders", "0 broker-a", "1 broker-b", "%RETRY%billing on broker-a", "0"]

    def test_members_are_shown_with_their_queues(self, http, group):
        html = http.get(reverse("group_members", args=["local", "billing"])).content.decode()
        assert '<span>orders</span><span class="chip">0</span>' in html

    def test_a_group_without_members_says_so(self, http, group, now):
        group.members.update(left_at=now - timedelta(minutes=5))
        text = text_of(http.get(reverse("group_members", args=["local", "billing"])))
        assert "No member is online" in text
        assert "Left in the last 24 hours" in text

    def test_a_member_that_asks_for_something_else_is_marked(self, http, group, now):
        seed.make_member(group, "10.0.3.9@8812", now=now, online_since=now - timedelta(minutes=9))
        for client_id in group.members.values_list("client_id", flat=True):
            expression = "B" if client_id == "10.0.3.9@8812" else "refunded||paid"
            group.subscriptions.filter(client_id=client_id).delete()
            seed.make_subscription(group, "orders", expression, now=now, client_id=client_id)
        text = text_of(http.get(reverse("group_subscriptions", args=["local", "billing"])))
        assert "No subscription to orders is in the majority, so it is not known which is wrong" in text
        assert "◆ B" in text
        assert "◆ refunded||paid" in text
        assert "the one that was there first is not named" in text
        assert "subscribe to “B” of topic orders, the others to “refunded||paid”: 10.0.3.9@8812." in text
        assert "Deploy one expression to all members" in text

    def test_differences_that_the_broker_saw_are_listed_and_those_that_last_come_first(self, http, group, now):
        since = now - timedelta(minutes=9)
        over = seed.make_difference("orders", "old", since=now, is_over=True)
        lasting = seed.make_difference("orders", "B", since=since, others=["10.0.3.7@2211#1"])
        absent = seed.make_difference("stock", None, since=since - timedelta(minutes=1), others=["10.0.3.7@2211#1"])
        seed.make_member(group, "10.0.3.9@8812", now=now, differences=[over, absent, lasting])
        text = text_of(http.get(reverse("group_subscriptions", args=["local", "billing"])))
        listed = text[text.index("Differences that the broker saw") :]
        assert listed.index(" B ") < listed.index("not subscribed") < listed.index(" old ")
        assert "over" in listed
        assert "9 m ago" in listed

    def test_a_group_without_differences_has_no_list_of_them(self, http, group):
        text = text_of(http.get(reverse("group_subscriptions", args=["local", "billing"])))
        assert "Differences that the broker saw" not in text

    def test_rebalances_tell_who_got_what(self, http, group):
        text = text_of(http.get(reverse("group_rebalances", args=["local", "billing"])))
        assert "1 queue moved" in text
        assert "+ orders 0" in text

    def test_rebalances_show_how_restless_the_group_is_and_what_was_not_sampled(self, http, group, now):
        for minutes in range(2, 22, 2):
            seed.make_event(group, "lost", at=now - timedelta(minutes=minutes), client_id=f"c{minutes}")
        now_s = int(now.timestamp())
        for since, until in ((-3600, -900), (-300, 0)):
            group.cluster.sampled_spans.create(state="complete", since_s=now_s + since, until_s=now_s + until)
        text = text_of(http.get(reverse("group_rebalances", args=["local", "billing"])))
        assert "CHURNING 9 rebalances in the last hour" in text
        assert "10 members were lost" in text
        assert "(10 m 00 s) nothing was sampled" in text
        assert "reported by the broker" in text
        of_cluster = text_of(http.get(reverse("rebalances", args=["local"])))
        assert "CHURNING billing : 9 rebalances" in of_cluster
        assert "(10 m 00 s) nothing was sampled" in of_cluster

    def test_older_rebalances_are_linked(self, http, group, now):
        for minutes in range(60):
            seed.make_event(group, "joined", at=now - timedelta(minutes=minutes), client_id=f"c{minutes}")
        response = http.get(reverse("group_rebalances", args=["local", "billing"]))
        link = re.search(r'rel="next" href="(\?before=[^"]+)"', response.content.decode())
        assert link
        older = http.get(reverse("group_rebalances", args=["local", "billing"]) + link[1].replace("&amp;", "&"))
        assert "c59" in text_of(older)
        assert "c10 " not in text_of(older)


class TestTopic:
    def test_shows_queues_and_who_reads(self, http, group):
        text = text_of(http.get(reverse("topic", args=["local", "orders"])))
        assert "One group reads it; it needs attention." in text
        assert "132,111" in text
        assert "billing" in text

    def test_retry_and_dead_letter_topics_are_listed_on_demand(self, http, cluster, now):
        seed.make_topic(cluster, "orders", now=now)
        seed.make_topic(cluster, "%RETRY%billing", now=now, kind="retry")
        url = reverse("topics", args=["local"])
        assert "%RETRY%" not in text_of(http.get(url))
        assert "%RETRY%billing" in text_of(http.get(url, {"kind": "all"}))
        assert http.get(reverse("topic", args=["local", "%RETRY%billing"])).status_code == 200


def test_lag_over_time_is_drawn_per_queue_and_says_what_was_not_sampled(http, group, now):
    cluster = group.cluster
    for seconds, committed in ((180, 10), (150, 20), (60, 30), (30, 40)):
        group.queue_offsets.update(committed_offset=committed)
        Group.objects.filter(pk=group.pk).update(revision=committed)
        at = now - timedelta(seconds=seconds)
        Cluster.objects.filter(pk=cluster.pk).update(last_synced_at=at, state="reachable", brokers_away={})
        sampling.sample_cluster(Cluster.objects.with_freshness().get(pk=cluster.pk), at)
    page = reverse("group_lag", args=["local", "billing"])
    answer = http.get(page + "?range=15m")
    assert 'class="sparkline"' in answer.content.decode()
    assert "no sample was taken" in text_of(answer)
    queue = re.search(r'href="(\?range=15m&amp;queue=[^"]+)"', answer.content.decode())
    assert queue is not None
    assert "All queues" in text_of(http.get(page + unescape(queue[1])))
    assert http.get(page + "?range=never&queue=nothing").status_code == 200


def test_lag_of_a_range_that_is_over_is_drawn_and_has_its_way_back(http, group, now):
    page = reverse("group_lag", args=["local", "billing"])
    until = (now - timedelta(minutes=90)).replace(microsecond=0)
    shown = http.get(page, {"range": "1h", "until": until.isoformat()})
    words = text_of(shown)
    assert f"From {until - timedelta(hours=1):%Y-%m-%d %H:%M:%S} to {until:%Y-%m-%d %H:%M:%S} (UTC)" in words
    assert all(word in words for word in ("Earlier", "Later", "Now"))
    assert "Later" not in text_of(http.get(page, {"range": "1h"}))
    for nonsense in ("yesterday", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2026-11-23"):
        assert http.get(page, {"range": "48h", "until": nonsense}).status_code == 200


def test_a_group_of_ours_tells_its_delivery_latency(http: Client, group: Group, now: Any, settings: Any) -> None:
    settings.MQADMIN_NAMESRV = group.cluster.namesrv
    address = f"/clusters/{group.cluster.name}/groups/{group.name}/"
    assert "Delivery latency" not in http.get(address).content.decode()
    hour_s = int(now.timestamp()) // 3600 * 3600
    told = {"group": group.name, "topic": HOSTILE, "member": "me", "hour_s": hour_s}
    DeliveryHour.objects.create(**told, counts=[[10, 95], [63, 4], [120, 1]])
    page = http.get(address).content.decode()
    assert "Delivery latency in this hour and the last one" in page
    assert ">10 ms<" in page
    assert "<script>alert" not in page
