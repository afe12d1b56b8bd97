"""Topics and groups as a file on a page: compared, applied once, and what is wrong with it."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from mqadmin.audit.models import AuditEntry
from mqadmin.clusters.models import Cluster
from mqadmin.console.views import configuration
from mqadmin.ownership.models import Ownership
from mqadmin.people.roles import Role
from remoting.wire.bodies.topics import TopicConfig
from tests.mqadmin.console.pages import names_in, text_of
from tests.support import console_rows as seed
from tests.support.group_brokers import GroupBrokers
from tests.support.people import make_person

PAGE = "/clusters/prod/configuration/"
FILE = """topics:
  orders:
    owner: shop
    read_queues: 4
    write_queues: 4
    perm: 6
groups:
  billing:
    retry_times_max: 3
"""


@pytest.fixture
def brokers(db, now) -> Iterator[GroupBrokers]:
    with GroupBrokers("broker-a") as brokers:
        prod = seed.make_cluster("prod", now=now, namesrv=brokers.namesrv)
        seed.make_broker(prod, now=now)
        brokers["broker-a"].topics["orders"] = TopicConfig(topic_name="orders", read_queue_nums=8, write_queue_nums=8)
        yield brokers


def applying(compared: Any) -> dict[str, str]:
    """What the form that applies holds."""
    form = compared.content.decode().partition('class="confirm-form"')[2].partition("</form>")[0]
    found = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form))
    (text,) = re.findall(r'<textarea name="text" hidden>\n(.*?)</textarea>', form, re.DOTALL)
    return {name: value for name, value in found.items() if name != "csrfmiddlewaretoken"} | {
        "text": html.unescape(text),
        "apply": "1",
    }


def test_what_differs_is_shown_and_nothing_is_changed_by_looking(http, brokers):
    assert f'href="{PAGE}"' in http.get("/clusters/prod/").content.decode()
    assert "confirm-form" not in http.get(PAGE).content.decode()
    compared = http.post(PAGE, {"text": FILE})
    text = text_of(compared)
    assert "DIFFERS 3 things differ from the file" in text
    assert "orders 2 Change the settings of a topic broker-a queues to read 8 → 4" in text
    assert "billing 8 Create a group broker-a new" in text
    assert not AuditEntry.objects.exists()


def test_a_file_can_be_chosen_instead_of_pasted(http, brokers):
    chosen = SimpleUploadedFile("mq.yaml", FILE.encode())
    assert names_in(http.post(PAGE, {"text": "", "file": chosen})) == ["orders", "orders", "billing"]


def test_applying_it_changes_what_differs_with_an_outcome_each(http, brokers):
    done = http.post(PAGE, applying(http.post(PAGE, {"text": FILE})))
    assert brokers["broker-a"].topics["orders"].read_queue_nums == 4
    assert brokers["broker-a"].groups["billing"].retry_max_times == 3
    assert Ownership.objects.get().owner == "shop"
    page = http.get(done["Location"])
    assert "DONE All 3 are done." in text_of(page)
    assert names_in(page) == ["orders", "orders", "billing"]
    assert "orders Say whose a topic is DONE" in text_of(page)
    entry = AuditEntry.objects.get(action="describe_topic")
    assert "None" not in text_of(http.get(f"/audit/{entry.number}/")), "what was not said is not shown"
    assert "OK Nothing differs from the file" in text_of(http.post(PAGE, {"text": FILE}))


def test_a_second_click_leads_to_the_same_and_changes_nothing(http, brokers):
    form = applying(http.post(PAGE, {"text": FILE}))
    first = http.post(PAGE, form)
    assert http.post(PAGE, form)["Location"] == first["Location"]
    assert AuditEntry.objects.count() == 3


def test_a_page_that_has_grown_old_applies_nothing(http, brokers):
    form = applying(http.post(PAGE, {"text": FILE}))
    brokers["broker-a"].topics["orders"] = TopicConfig(topic_name="orders", read_queue_nums=16, write_queue_nums=8)
    stale = http.post(PAGE, form)
    assert stale.status_code == 409
    assert "Nothing was done: look at what differs now." in text_of(stale)
    assert "queues to read 16 → 4" in text_of(stale)
    assert not AuditEntry.objects.exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "There is nothing to compare"),
        ("topics:\n  orders:\n    colour: red", "line 3: 'colour' is unknown"),
        ("topics: [", "line 1"),
        (
            "topics:\n  orders:\n    read_queues: 0\n    write_queues: 1\n    perm: 6",
            "line 3: topic orders: read_queues",
        ),
        ("#" * (configuration.TEXT_BYTES_MAX + 1), "split it"),
    ],
)
def test_what_is_wrong_is_said_with_its_line_and_the_text_stays(http, brokers, text, words):
    page = http.post(PAGE, {"text": text})
    assert page.status_code == 422
    assert words in text_of(page)
    assert html.escape(text) in page.content.decode()


def test_brokers_that_take_too_long_are_said_with_how_far_it_got(http, brokers, monkeypatch):
    monkeypatch.setattr(configuration, "PLAN_WITHIN_S", -1.0)
    assert "compared up to line 2" in text_of(http.post(PAGE, {"text": FILE}))


def test_more_changes_than_one_request_makes_are_shown_and_not_applied(http, brokers, monkeypatch):
    monkeypatch.setattr(configuration, "BATCH_RUNS_MAX", 2)
    page = http.post(PAGE, {"text": FILE})
    assert "More than 2 changes are not applied at once here" in text_of(page)
    assert "confirm-form" not in page.content.decode()


def test_a_name_in_the_file_is_escaped(http, brokers):
    page = http.post(PAGE, {"text": 'topics:\n  "<script>x":\n    owner: "<i>"\n'}).content.decode()
    assert "<script>x" not in page
    assert "<i>" not in page


def test_what_is_there_is_exported_from_there(http, brokers, now):
    seed.make_topic(Cluster.objects.get(), "orders", now=now)
    (address,) = re.findall(r'href="(/api/v1/[^"]*/configuration)"', http.get(PAGE).content.decode())
    assert "read_queues: 8" in http.get(address).content.decode()


def test_who_may_not_change_topics_and_groups_has_no_page(brokers):
    viewer = Client()
    viewer.force_login(make_person("vera", Role.VIEWER))
    assert viewer.get(PAGE).status_code == 403
    assert PAGE not in viewer.get("/clusters/prod/").content.decode()
