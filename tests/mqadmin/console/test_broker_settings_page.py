"""A broker's settings on a page: beside their defaults, filtered, with the change previewed from there."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

import pytest
from django.test import Client

from remoting.connection import Connection
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.java_properties import write_properties
from tests.mqadmin.console.pages import names_in, text_of
from tests.support import console_rows as seed
from tests.support.people import make_person
from tests.support.topic_brokers import TopicBrokers

PAGE = "/clusters/prod/brokers/broker-a/settings/"
SETTINGS = {
    "fileReservedTime": "48",
    "autoCreateTopicEnable": "true",
    "listenPort": "10911",
    "ours<b>\u202e": "<script>",
    "somePassword": "hush",
}


@pytest.fixture
def brokers(db, now) -> Iterator[TopicBrokers]:
    def read(_: Connection, request: Command) -> Command:
        return response(request, ResponseCode.SUCCESS, body=write_properties(SETTINGS).encode())

    with TopicBrokers("broker-a") as brokers:
        broker = brokers["broker-a"].server
        broker.answers[RequestCode.GET_BROKER_CONFIG] = read
        prod = seed.make_cluster("prod", now=now, namesrv=brokers.namesrv)
        seed.make_broker(prod, now=now, address=broker.address)
        yield brokers


def test_each_setting_stands_beside_its_default_and_what_differs_is_marked(http, brokers):
    text = text_of(http.get(PAGE))
    assert "One setting differs from its default." in text
    assert "fileReservedTime DIFFERS 48 72 Change" in text
    assert "autoCreateTopicEnable true true Change" in text
    assert "listenPort 10911 each broker's own" in text


def test_the_filters_have_addresses(http, brokers):
    assert names_in(http.get(PAGE, {"show": "changed"})) == ["fileReservedTime"]
    assert names_in(http.get(PAGE, {"q": "autocreate"})) == ["autoCreateTopicEnable"]
    assert names_in(http.get(PAGE, {"q": "10911"})) == ["listenPort"]
    assert "fileReservedTime" not in names_in(http.get(PAGE, {"show": "unknown"}))
    assert "No setting matches the filter" in text_of(http.get(PAGE, {"q": "nothing like it"}))


@pytest.mark.parametrize("query", ["show=changed", "show=unknown", "q=autocreate", "q=10911", "q=hush"])
def test_rest_has_the_filters_of_the_page(http, brokers, query):
    found = http.get(f"/api/v1{PAGE.rstrip('/')}?{query}").json()["items"]
    assert [one["name"] for one in found] == [html.unescape(name) for name in names_in(http.get(f"{PAGE}?{query}"))]


def test_a_password_is_neither_shown_nor_found_by_its_value(http, brokers):
    assert "hush" not in text_of(http.get(PAGE))
    assert names_in(http.get(PAGE, {"q": "hush"})) == []


def test_hostile_names_and_values_are_escaped_and_isolated(http, brokers):
    page = http.get(PAGE).content.decode()
    assert "<script>" not in page.replace("<script src", "")
    assert "<bdi>&lt;script&gt;</bdi>" in page


def test_a_setting_leads_to_its_preview_with_old_new_and_default(http, brokers):
    (address,) = re.findall(r'href="([^"]*settings=fileReservedTime[^"]*)"', http.get(PAGE).content.decode())
    assert "is so already" in text_of(http.get(html.unescape(address)))
    preview = text_of(http.get(html.unescape(address).replace("48", "24")))
    assert "value 48 → 24 default 72" in preview


def test_a_broker_that_is_away_says_so_with_its_tabs(http, brokers):
    brokers.vanish("broker-a")
    text = text_of(http.get(PAGE))
    assert "UNREACHABLE It did not tell its settings." in text
    assert "Run Settings" in text


def test_who_may_not_change_gets_no_link_and_who_may_not_see_asks_nobody(http, brokers):
    from_viewer = Client()
    from_viewer.force_login(make_person("vera", "viewer"))
    assert "Change fileReservedTime" not in from_viewer.get(PAGE).content.decode()
    asked = len(brokers["broker-a"].server.asked)
    from_nobody = Client()
    from_nobody.force_login(make_person("nora"))
    assert from_nobody.get(PAGE).status_code == 404
    assert len(brokers["broker-a"].server.asked) == asked
