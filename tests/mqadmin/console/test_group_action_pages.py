"""Pages of the actions on groups: where they are offered, what they ask, what they show."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

import pytest
from django.test import Client

from mqadmin.audit.models import AuditEntry
from mqadmin.people.roles import Role
from remoting.wire.bodies.groups import SubscriptionGroupConfig
from tests.support import console_rows as seed
from tests.support.group_brokers import GroupBrokers
from tests.support.people import make_person

GROUP = "/clusters/prod/groups/billing/"


@pytest.fixture
def brokers(db, now) -> Iterator[GroupBrokers]:
    with GroupBrokers("broker-a") as brokers:
        prod = seed.make_cluster("prod", now=now, namesrv=brokers.namesrv)
        seed.make_broker(prod, "broker-a", now=now)
        seed.make_group(prod, "billing", now=now)
        brokers["broker-a"].groups["billing"] = SubscriptionGroupConfig(group_name="billing")
        yield brokers


@pytest.fixture
def reader_http(db) -> Client:
    """Somebody who may look at everything and change nothing."""
    client = Client()
    client.force_login(make_person("reader", Role.VIEWER))
    return client


def text_of(response) -> str:
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode())))


def hidden(response) -> dict[str, str]:
    form = response.content.decode().partition('class="action-form confirm-form"')[2]
    found = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form)
    return {name: html.unescape(value) for name, value in found if name != "csrfmiddlewaretoken"}


def test_a_group_is_created_from_the_list(http, brokers):
    assert 'href="/clusters/prod/create-group/"' in http.get("/clusters/prod/groups/").content.decode()
    page = http.get("/clusters/prod/create-group/")
    assert "Broadcasting is allowed" in text_of(page)
    assert "confirm-form" not in page.content.decode()
    asked = {"group": "mail", "retry_times_max": "3", "broadcasting": "false", "consumption": ""}
    seen = http.get("/clusters/prod/create-group/", asked)
    assert "broadcasting allowed no" in text_of(seen)
    assert http.post("/clusters/prod/create-group/", hidden(seen)).status_code == 302
    made = brokers["broker-a"].groups["mail"]
    assert (made.retry_max_times, made.consume_broadcast_enable, made.consume_enable) == (3, False, True)


def test_consumption_is_stopped_from_the_groups_page_and_taken_back(http, brokers):
    page = http.get(GROUP).content.decode()
    (address,) = re.findall(rf'href="({GROUP}consumption/[^"]*)"', page)
    assert address.endswith("?consumption=false")
    seen = http.get(address)
    assert "members may consume yes → no" in text_of(seen)
    done = http.post(f"{GROUP}consumption/", hidden(seen))
    assert not brokers["broker-a"].groups["billing"].consume_enable
    (undo,) = re.findall(r'href="([^"]+)">Take it back', http.get(done["Location"]).content.decode())
    seen = http.get(html.unescape(undo))
    assert "members may consume no → yes" in text_of(seen)
    http.post(f"{GROUP}consumption/", hidden(seen))
    assert brokers["broker-a"].groups["billing"].consume_enable


def test_deleting_shows_at_once_what_is_lost_and_asks_for_the_name(http, brokers):
    brokers["broker-a"].lag, brokers["broker-a"].members = {"billing": 12}, ["10.0.0.1@7"]
    seen = http.get(f"{GROUP}delete/")
    assert "12 messages are not consumed yet." in text_of(seen)
    assert "members online 10.0.0.1@7" in text_of(seen)
    refused = http.post(f"{GROUP}delete/", hidden(seen) | {"confirmation": "bill"})
    assert (refused.status_code, "Type the name billing to confirm" in text_of(refused)) == (422, True)
    done = http.post(f"{GROUP}delete/", hidden(seen) | {"confirmation": "billing"})
    assert done.status_code == 302
    assert not brokers["broker-a"].groups
    assert AuditEntry.objects.latest("pk").outcome == "done"


def test_who_may_only_look_is_offered_nothing(reader_http, brokers):
    for address in (GROUP, "/clusters/prod/groups/"):
        page = reader_http.get(address).content.decode()
        assert not re.search(r"create-group|consumption/|/delete/", page)
    for address in ("/clusters/prod/create-group/", f"{GROUP}consumption/", f"{GROUP}delete/"):
        assert reader_http.get(address).status_code == 403
        assert reader_http.post(address).status_code == 403
