"""A group's settings as its brokers have them, and forms that start at what is there now."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from django.test import Client

from mqadmin.people.roles import Role
from remoting.wire.bodies.groups import SubscriptionGroupConfig
from remoting.wire.bodies.topics import TopicConfig
from tests.mqadmin.console.pages import names_in, text_of
from tests.support import console_rows as seed
from tests.support.group_brokers import GroupBrokers
from tests.support.people import make_person

GROUP = "/clusters/prod/groups/billing/"
TOPIC = "/clusters/prod/topics/orders/"


@pytest.fixture
def brokers(db, now) -> Iterator[GroupBrokers]:
    with GroupBrokers("broker-a", "broker-b") as brokers:
        prod = seed.make_cluster("prod", now=now, namesrv=brokers.namesrv)
        for name, broker in brokers.brokers.items():
            seed.make_broker(prod, name, now=now)
            broker.groups["billing"] = SubscriptionGroupConfig(group_name="billing", retry_max_times=3)
            broker.topics["orders"] = TopicConfig(topic_name="orders", read_queue_nums=4, write_queue_nums=4)
        seed.make_group(prod, "billing", now=now)
        seed.make_topic(prod, "orders", now=now)
        yield brokers


def field(response, name: str) -> str:
    """What the form's field holds."""
    page = response.content.decode()
    (found,) = re.findall(rf'<input type="number" name="{name}"([^>]*)>', page) or [""]
    if not found:
        (options,) = re.findall(rf'<select name="{name}".*?</select>', page, re.DOTALL)
        return re.findall(r'<option value="([^"]*)" selected', options)[0]
    return (re.findall(r'value="([^"]*)"', found) or [""])[0]


def test_the_settings_stand_beside_those_of_a_new_group(http, brokers):
    text = text_of(http.get(f"{GROUP}settings/"))
    assert "All 2 brokers that have it have the same settings." in text
    assert "retries 3 16" in text
    assert "members may consume yes yes" in text
    assert "broker for members that are slow 1 1" in text
    assert f'href="{GROUP}settings/"' in http.get(GROUP).content.decode()


def test_where_brokers_differ_each_says_what_it_has(http, brokers):
    brokers["broker-b"].groups["billing"] = SubscriptionGroupConfig(group_name="billing", retry_max_times=5)
    text = text_of(http.get(f"{GROUP}settings/"))
    assert "DIFFERS The brokers that have it differ." in text
    assert "retries DIFFERS broker-a 3 , broker-b 5 16" in text


def test_a_broker_that_is_away_is_named_beside_what_the_others_have(http, brokers):
    brokers.vanish("broker-b")
    text = text_of(http.get(f"{GROUP}settings/"))
    assert "broker-a has these settings of it." in text
    assert re.search(r"PARTIAL broker-b : \S+", text)
    brokers.vanish("broker-a")
    assert "UNREACHABLE No broker told its settings." in text_of(http.get(f"{GROUP}settings/"))


def test_a_group_that_only_has_offsets_says_so(http, brokers):
    for broker in brokers.brokers.values():
        broker.groups.clear()
    assert "No broker that answered has settings of it" in text_of(http.get(f"{GROUP}settings/"))


def test_a_viewer_sees_them_and_gets_no_form(brokers):
    viewer = Client()
    viewer.force_login(make_person("vera", Role.VIEWER))
    page = viewer.get(f"{GROUP}settings/")
    assert "retry_times_max" in names_in(page)
    assert "Change its settings" not in text_of(page)
    assert viewer.get(f"{GROUP}change/").status_code == 403


def test_a_groups_form_starts_at_what_is_there_and_ends_in_a_change(http, brokers):
    form = http.get(f"{GROUP}change/")
    assert "Change the settings of a group: billing" in text_of(form)
    assert (field(form, "retry_times_max"), field(form, "consumption")) == ("3", "true")
    assert "confirm-form" not in form.content.decode()
    preview = text_of(http.get(f"{GROUP}change/", {"retry_times_max": "7"}))
    assert "retries 3 → 7" in preview


def test_a_groups_form_leaves_empty_what_brokers_have_differently_and_says_so(http, brokers):
    brokers["broker-b"].groups["billing"] = SubscriptionGroupConfig(group_name="billing", retry_max_times=5)
    form = http.get(f"{GROUP}change/")
    assert (field(form, "retry_times_max"), field(form, "retry_queues")) == ("", "1")
    assert "Its brokers have different settings." in text_of(form)
    assert "Only broker-b : retries 5" in text_of(form)
    of_one = http.get(f"{GROUP}change/", {"brokers": "broker-b"})
    assert field(of_one, "retry_times_max") == "5"
    assert re.search(r'value="broker-b"[^>]*checked', of_one.content.decode())


def test_a_topics_form_starts_at_what_is_there_where_brokers_differ_at_the_firsts(http, brokers):
    assert field(http.get(f"{TOPIC}change/"), "read_queues") == "4"
    brokers["broker-b"].topics["orders"] = TopicConfig(topic_name="orders", read_queue_nums=16, write_queue_nums=4)
    form = http.get(f"{TOPIC}change/")
    assert field(form, "read_queues") == "4"
    assert "The form starts with those of broker-a" in text_of(form)
    assert "Only broker-b : queues to read 16" in text_of(form)
    assert field(http.get(f"{TOPIC}change/", {"brokers": "broker-b"}), "read_queues") == "16"
    assert f'href="{TOPIC}change/"' in http.get(TOPIC).content.decode()


def test_a_form_without_an_answer_says_why_and_a_name_that_is_not_known_has_none(http, brokers):
    for name in brokers.brokers:
        brokers.vanish(name)
    page = text_of(http.get(f"{TOPIC}change/"))
    assert "refused" in page or "connect" in page
    assert http.get("/clusters/prod/topics/nothing/change/").status_code == 404


def test_a_broker_that_is_not_one_of_the_clusters_is_not_chosen(http, brokers):
    assert "The form starts with what" not in text_of(http.get(f"{TOPIC}change/", {"brokers": "<b>nobody"}))
