"""Pages that run an action: form, preview, what was typed kept, a click too many, a page that has grown old."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import reverse

from consumer.models import HostedGroup
from mqadmin.action_runs.models import ActionRun
from mqadmin.audit.models import AuditEntry
from mqadmin.clusters.models import Cluster
from mqadmin.people.roles import Role
from remoting.wire.bodies.topics import TopicConfig
from tests.support import console_rows as seed
from tests.support.people import make_person
from tests.support.topic_brokers import TopicBrokers

CREATE = "/clusters/prod/create-topic/"
DELETE = "/clusters/prod/topics/orders/delete/"
FOUR = {"topic": "orders", "read_queues": "4", "write_queues": "4", "perm": "6"}


@pytest.fixture
def brokers(db, now) -> Iterator[TopicBrokers]:
    with TopicBrokers("broker-a", "broker-b") as brokers:
        prod = seed.make_cluster("prod", now=now, namesrv=brokers.namesrv)
        for name in brokers.brokers:
            seed.make_broker(prod, name, now=now)
        yield brokers


def text_of(response) -> str:
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode())))


def hidden(response) -> dict[str, str]:
    """What the form that carries out holds."""
    form = response.content.decode().partition('class="action-form confirm-form"')[2]
    found = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form)
    return {name: html.unescape(value) for name, value in found if name != "csrfmiddlewaretoken"}


def carry_out(http: Client, address: str, preview, **typed: str):
    return http.post(address, hidden(preview) | typed)


def test_a_form_asks_for_the_arguments_and_offers_the_defaults(http, brokers):
    page = http.get(CREATE).content.decode()
    for name, value in (("read_queues", 8), ("write_queues", 8)):
        assert re.search(rf'<input type="number" name="{name}" value="{value}"', page)
    assert "broker-b" in page
    assert "Nothing to do" not in page
    assert "confirm-form" not in page


def test_a_preview_has_an_address_and_changes_nothing(http, brokers):
    response = http.get(CREATE, FOUR)
    assert "broker-a new queues to read 4" in text_of(response)
    assert not brokers["broker-a"].topics
    assert not AuditEntry.objects.exists()


def test_carrying_out_ends_on_a_page_that_says_what_became_of_each_broker(http, brokers):
    brokers["broker-b"].refusal = "no room"
    response = carry_out(http, CREATE, http.get(CREATE, FOUR))
    run = AuditEntry.objects.get().run
    assert response["Location"] == f"/actions/{run}/"
    text = text_of(http.get(response["Location"]))
    assert "PARTIAL" in text
    assert "broker-a DONE" in text
    assert re.search(r"broker-b FAILED .*no room", text)


def test_what_was_done_can_be_taken_back_from_there(http, brokers):
    page = http.get(carry_out(http, CREATE, http.get(CREATE, FOUR))["Location"]).content.decode()
    (undo,) = re.findall(r'href="([^"]+)">Take it back', page)
    assert html.unescape(undo) == f"{DELETE}?topic=orders"
    assert "Type orders to confirm" in text_of(http.get(html.unescape(undo)))


def test_what_was_typed_stays_with_the_error_at_its_field(http, brokers):
    response = http.get(CREATE, FOUR | {"topic": "not a name", "read_queues": "many", "brokers": "broker-b"})
    page = response.content.decode()
    assert 'value="not a name"' in page
    assert re.search(r'name="topic"[^>]*aria-invalid="true"', page)
    assert re.search(r'id="id_topic_error">The topic name', page)
    assert 'value="many"' in page
    assert re.search(r'value="broker-b"[^>]*checked', page)
    assert "confirm-form" not in page


def test_a_second_click_shows_the_run_of_the_first(http, brokers):
    preview = http.get(CREATE, FOUR)
    first, second = carry_out(http, CREATE, preview), carry_out(http, CREATE, preview)
    assert first["Location"] == second["Location"]
    assert AuditEntry.objects.count() == 1


def test_a_page_that_has_grown_old_is_refused_and_shows_how_it_is_now(http, brokers):
    preview = http.get(CREATE, FOUR)
    brokers["broker-a"].topics["orders"] = TopicConfig(topic_name="orders", read_queue_nums=16, write_queue_nums=16)
    response = carry_out(http, CREATE, preview)
    assert response.status_code == 409
    assert "has changed since this page was opened" in text_of(response)
    assert "queues to read 16 → 4" in text_of(response)
    assert hidden(response)["fingerprint"] != hidden(preview)["fingerprint"]
    assert carry_out(http, CREATE, response).status_code == 302


def test_deleting_takes_the_name_typed_and_keeps_what_was_typed(http, brokers):
    brokers["broker-a"].topics["orders"] = TopicConfig(topic_name="orders")
    brokers["broker-a"].message_count = 7
    preview = http.get(DELETE)
    assert "7 messages are deleted with it." in text_of(preview)
    response = carry_out(http, DELETE, preview, confirmation="order")
    assert response.status_code == 422
    assert 'value="order"' in response.content.decode()
    assert brokers["broker-a"].topics
    done = carry_out(http, DELETE, response, confirmation="orders")
    assert "broker-a DONE deleted" in text_of(http.get(done["Location"]))
    assert not brokers["broker-a"].topics
    assert "(any more)" in text_of(http.get(DELETE))


def test_brokers_that_do_not_answer_are_words_on_the_page(http, brokers):
    brokers.vanish("broker-a")
    brokers.vanish("broker-b")
    assert "no connection to" in text_of(http.get(CREATE, FOUR))
    response = http.post(CREATE, FOUR)
    text = text_of(http.get(response["Location"]))
    assert "FAILED Nothing was changed. no connection to" in text


def test_who_lacks_the_right_sees_no_link_no_form_and_is_refused(brokers, now):
    seed.make_topic(Cluster.objects.get(name="prod"), "orders", now=now)
    reader = Client()
    reader.force_login(make_person("reader", Role.VIEWER))
    for address in (CREATE, DELETE):
        assert reader.get(address).status_code == 403
        assert reader.post(address, FOUR).status_code == 403
    assert AuditEntry.objects.filter(outcome="refused", actor="reader").count() == 2
    assert "Delete the topic" not in text_of(reader.get("/clusters/prod/topics/orders/"))
    assert "Create a topic" not in text_of(reader.get("/clusters/prod/topics/"))


def test_who_has_the_right_finds_the_links(http, brokers, now):
    seed.make_topic(Cluster.objects.get(name="prod"), "orders", now=now)
    seed.make_topic(Cluster.objects.get(name="prod"), "TBW102", now=now, kind="system")
    assert f'href="{CREATE}"' in http.get("/clusters/prod/topics/").content.decode()
    assert f'href="{DELETE}"' in http.get("/clusters/prod/topics/orders/").content.decode()
    assert "Delete the topic" not in text_of(http.get("/clusters/prod/topics/TBW102/"))


def test_a_run_is_shown_to_whoever_started_it_and_to_those_who_may_read_the_audit(http, brokers):
    run = carry_out(http, CREATE, http.get(CREATE, FOUR))["Location"]
    other = Client()
    other.force_login(make_person("other", Role.VIEWER))
    assert other.get(run).status_code == 403
    assert http.get(reverse("action_run", args=[uuid4()])).status_code == 404


def test_a_run_under_way_says_so_and_looks_again_by_itself(http, brokers):
    run = ActionRun.objects.create(
        actor="admin", key="k", action="create_topic", cluster="prod", subject_kind="topic", subject="orders"
    )
    page = http.get(reverse("action_run", args=[run.pk])).content.decode()
    assert "RUNNING" in page
    assert 'hx-trigger="every 1s"' in page
    busy = http.post(CREATE, FOUR)
    assert busy.status_code == 409
    assert "admin is changing orders at this moment" in text_of(busy)


def test_hostile_names_are_escaped(http, brokers):
    hostile = "<script>alert(1)</script>"
    response = http.get(CREATE, FOUR | {"topic": hostile})
    assert hostile not in response.content.decode()
    assert http.post(CREATE, FOUR | {"topic": hostile, "key": "\0" * 500}).status_code == 422


def test_an_unknown_cluster_or_group_is_not_found(http, brokers):
    assert http.get("/clusters/nowhere/create-topic/").status_code == 404
    assert http.get("/clusters/prod/groups/nobody/instances/").status_code == 404


def test_the_page_of_the_instances_previews_too(http, group, settings):
    settings.MQADMIN_NAMESRV = group.cluster.namesrv
    HostedGroup.objects.create(group="billing", wanted_instances=2, declared_instances=2)
    address = reverse("group_instances", args=["local", "billing"])
    assert re.search(r'name="wanted" value="2"', http.get(address).content.decode())
    preview = http.get(address, {"wanted": "5"})
    assert "instances wanted 2 → 5" in text_of(preview)
    HostedGroup.objects.update(wanted_instances=3)
    assert "has changed since" in text_of(http.post(address, hidden(preview), follow=True))
    assert HostedGroup.objects.get().wanted_instances == 3


def test_a_token_is_made_on_a_page_that_shows_it_once(http: Client) -> None:
    create = http.get("/tokens/").content.decode().split('href="/tokens/create/?')[1].split('"')[0]
    page = http.get(f"/tokens/create/?{create}&token=nightly&role=viewer&days=3")
    assert "curl --fail-with-body" in page.content.decode()
    values = {"token": "nightly", "person": "admin", "role": "viewer", "days": "3", "key": "k"}
    made = http.post("/tokens/create/", values).content.decode()
    assert "mqa_" in made
    assert "mqa_" not in http.post("/tokens/create/", values, follow=True).content.decode()
    assert "nightly" in http.get("/tokens/").content.decode()
    revoke = {"token": "nightly", "person": "admin", "key": "k2"}
    assert http.post("/tokens/nightly/revoke/?person=admin", revoke).status_code == 302
    assert "nightly" not in http.get("/tokens/").content.decode()
