"""One action on many topics or groups: chosen by the list's filter, previewed, run once, an outcome for each."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from unittest.mock import Mock

import pytest
from django.test import Client
from django.utils import timezone

from mqadmin.action_runs import runs
from mqadmin.action_runs.many import run_many
from mqadmin.action_runs.models import ActionRun
from mqadmin.audit.models import AuditEntry
from mqadmin.clusters.models import Cluster
from mqadmin.console.views import many
from mqadmin.ownership.models import Ownership
from mqadmin.people.models import ClusterRole
from mqadmin.people.roles import Role
from remoting.wire.bodies.groups import SubscriptionGroupConfig
from remoting.wire.bodies.topics import TopicConfig
from tests.mqadmin.console.pages import names_in, text_of
from tests.support import console_rows as seed
from tests.support.callers import caller
from tests.support.group_brokers import GroupBrokers
from tests.support.people import make_person

PAGE = "/clusters/prod/change-topics/"
GROUPS = "/clusters/prod/change-groups/"
NAMES = ["mails", "orders", "refunds"]


@pytest.fixture
def brokers(db, now) -> Iterator[GroupBrokers]:
    with GroupBrokers("broker-a") as brokers:
        prod = seed.make_cluster("prod", now=now, namesrv=brokers.namesrv)
        seed.make_broker(prod, now=now)
        for name in NAMES:
            seed.make_topic(prod, name, now=now)
            brokers["broker-a"].topics[name] = TopicConfig(topic_name=name, perm=6)
            seed.make_group(prod, name, now=now)
            brokers["broker-a"].groups[name] = SubscriptionGroupConfig(group_name=name)
        Ownership.objects.create(cluster=prod, kind="topic", name="mails", owner="crm")
        yield brokers


def ticked(response: Any) -> list[str]:
    found = re.findall(r'name="subject" value="([^"]*)" checked', response.content.decode())
    return [html.unescape(name) for name in found]


def hidden(response: Any) -> dict[str, list[str]]:
    """What the form that carries out holds."""
    form = response.content.decode().partition('class="action-form confirm-form"')[2]
    values: dict[str, list[str]] = {}
    for name, value in re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form):
        if name != "csrfmiddlewaretoken":
            values.setdefault(name, []).append(html.unescape(value))
    return values


def shut(http: Client, subjects: list[str] = NAMES) -> Any:
    return http.get(PAGE, {"action": "set_topic_permission", "subject": subjects, "perm": "4", "asked": "1"})


def perms(brokers: GroupBrokers) -> dict[str, int]:
    return {name: topic.perm for name, topic in brokers["broker-a"].topics.items()}


def test_the_list_leads_there_with_its_filter_and_what_it_finds_is_ticked(http, brokers):
    listed = http.get("/clusters/prod/topics/", {"q": "r", "page": "1"}).content.decode()
    (address,) = re.findall(rf'href="({PAGE}[^"]*)"', listed)
    chosen = http.get(html.unescape(address))
    assert ticked(chosen) == ["orders", "refunds"]
    assert "The filter finds 2." in text_of(chosen)
    assert ticked(http.get(PAGE, {"owner": "crm"})) == ["mails"]
    assert ticked(http.get(PAGE, {"q": "none like it"})) == []
    assert ticked(http.get(GROUPS, {"status": "ok"})) == NAMES


def test_each_is_previewed_and_nothing_is_changed_by_looking(http, brokers):
    brokers["broker-a"].topics["orders"] = TopicConfig(topic_name="orders", perm=4)
    seen = shut(http, [*NAMES, "TBW102"])
    assert names_in(seen) == [*NAMES, "TBW102"]
    text = text_of(seen)
    assert "What it will do to 2 of them" in text
    assert "orders is so already" in text
    assert "TBW102 REFUSED TBW102 is a topic that RocketMQ keeps for itself" in text
    assert hidden(seen)["subject"] == ["mails", "refunds"]
    assert not AuditEntry.objects.exists()


def test_all_are_carried_out_with_an_outcome_and_an_entry_each(http, brokers):
    done = http.post(PAGE, hidden(shut(http)))
    assert perms(brokers) == dict.fromkeys(NAMES, 4)
    batches = set(AuditEntry.objects.values_list("batch", flat=True))
    assert done["Location"] == f"/actions/together/{batches.pop()}/?of=3"
    assert not batches
    page = http.get(done["Location"])
    assert "DONE All 3 are done." in text_of(page)
    assert names_in(page) == NAMES
    assert page.content.decode().count('href="/actions/') == 3


def test_a_text_that_is_left_blank_stays_as_it_is_on_each(http, brokers):
    prod = Cluster.objects.get(name="prod")
    for name, description in (("orders", "Each step."), ("refunds", "Money back.")):
        Ownership.objects.create(cluster=prod, kind="topic", name=name, description=description)
    asked = {"action": "describe_topic", "subject": NAMES, "owner": "shop", "description": "", "asked": "1"}
    seen = http.get(PAGE, asked)
    assert "What is left blank stays as it is." in text_of(seen)
    assert "left blank" not in text_of(shut(http))
    form = hidden(seen)
    assert form["subject"] == NAMES
    http.post(PAGE, form)
    assert list(Ownership.objects.order_by("name").values_list("name", "owner", "description")) == [
        ("mails", "shop", ""),
        ("orders", "shop", "Each step."),
        ("refunds", "shop", "Money back."),
    ]


def test_a_second_click_changes_nothing_again(http, brokers):
    form = hidden(shut(http))
    first = http.post(PAGE, form)
    asked = len(brokers["broker-a"].server.of_code(17))
    assert http.post(PAGE, form)["Location"] == first["Location"]
    assert len(brokers["broker-a"].server.of_code(17)) == asked
    assert AuditEntry.objects.count() == 3


def test_of_a_page_that_has_grown_old_only_what_changed_is_refused(http, brokers):
    form = hidden(shut(http))
    brokers["broker-a"].topics["orders"] = TopicConfig(topic_name="orders", perm=2)
    page = http.get(http.post(PAGE, form)["Location"])
    assert perms(brokers) == {"mails": 4, "orders": 2, "refunds": 4}
    assert "PARTIAL 2 of 3 are done; the others say why they are not." in text_of(page)
    assert "orders REFUSED orders has changed since this page was opened." in text_of(page)


def test_a_refusal_of_one_broker_is_said_with_its_subject(http, brokers):
    form = hidden(shut(http))
    brokers["broker-a"].refusal = "no room"
    text = text_of(http.get(http.post(PAGE, form)["Location"]))
    assert re.search(r"orders FAILED broker-a : .*no room", text)


def test_what_nothing_takes_back_asks_for_their_number(http, brokers):
    asked = {"action": "delete_topic", "subject": ["orders", "refunds"]}
    form = hidden(http.get(PAGE, asked))
    wrong = http.post(PAGE, form | {"confirmation": "orders"})
    assert wrong.status_code == 422
    assert "Type 2 to confirm. Nothing was changed." in text_of(wrong)
    assert not AuditEntry.objects.exists()
    assert http.post(PAGE, form | {"confirmation": "2"}).status_code == 302
    assert list(brokers["broker-a"].topics) == ["mails"]


def test_wrong_arguments_are_said_at_the_field_once_and_kept(http, brokers):
    asked = {"action": "create_topic", "subject": NAMES, "read_queues": "0", "write_queues": "8", "perm": "6"}
    page = http.get(PAGE, asked)
    assert 'value="0"' in page.content.decode()
    assert "greater than or equal to 1" in text_of(page)
    assert http.post(PAGE, asked | {"key": "k", "fingerprint": ["x"] * 3}).status_code == 422
    assert not AuditEntry.objects.exists()


@pytest.mark.parametrize("subjects", [[], ["orders", "orders"], [f"t{number}" for number in range(101)]])
def test_none_one_twice_or_too_many_are_refused_with_what_to_do(http, brokers, subjects):
    page = http.get(PAGE, {"action": "delete_topic", "subject": subjects})
    assert page.status_code == 422
    assert re.search(r"choose (at least one|fewer)|chosen twice", text_of(page))


def test_of_more_than_can_be_changed_the_first_are_offered_and_that_is_said(http, brokers, monkeypatch):
    monkeypatch.setattr(many, "BATCH_RUNS_MAX", 2)
    page = http.get(PAGE)
    assert ticked(page) == ["mails", "orders"]
    assert "The filter finds 3, and 2 can be changed at once" in text_of(page)


def test_what_could_not_be_previewed_in_time_is_named_and_left_as_it_is(http, brokers, monkeypatch):
    monkeypatch.setattr(many, "PREVIEWS_WITHIN_S", -1.0)
    page = shut(http)
    assert "There was no time to ask for 2 of them, which are left as they are: orders, refunds" in text_of(page)
    assert hidden(page)["subject"] == ["mails"]


def test_an_action_without_further_arguments_is_previewed_at_once(http, brokers):
    page = http.get(PAGE, {"action": "delete_topic", "subject": ["orders"]})
    assert names_in(page) == ["orders"]
    assert "Type 1 , how many they are" in text_of(page)


def test_who_may_change_nothing_gets_neither_link_nor_page(brokers):
    viewer = Client()
    viewer.force_login(make_person("vera", Role.VIEWER))
    assert PAGE not in viewer.get("/clusters/prod/topics/").content.decode()
    assert viewer.get(PAGE).status_code == 403
    assert viewer.post(PAGE, {"action": "delete_topic", "subject": ["orders"]}).status_code == 403


def test_what_became_of_them_is_shown_to_who_did_it_and_to_readers_of_the_audit(http, brokers):
    address = http.post(PAGE, hidden(shut(http)))["Location"]
    for role, status in ((Role.VIEWER, 403), (Role.ADMIN, 200)):
        other = Client()
        other.force_login(make_person(f"a-{role}", role))
        assert other.get(address).status_code == status
    assert http.get("/actions/together/8d6a2b0e-4f0e-4a54-9d0c-3f7c1b1e0a11/").status_code == 404


def test_the_page_waits_for_what_is_under_way_and_for_nothing_else(http, brokers, monkeypatch):
    run_many(caller(make_person("bob", Role.ADMIN)), "set_topic_permission", "prod", {"perm": 4}, ["orders"], key="k")
    batch = AuditEntry.objects.get().batch
    page = f"/actions/together/{batch}/?of=2"

    def is_refreshed() -> bool:
        return b"hx-trigger" in http.get(page).content

    assert is_refreshed(), "the next begins within seconds"
    later = timezone.now() + timedelta(minutes=1)
    with monkeypatch.context() as moment:
        moment.setattr(timezone, "now", lambda: later)
        assert not is_refreshed()
        assert "1 of 2 are done; 1 were not begun" in text_of(http.get(page))
        claimed = ActionRun.objects.create(
            actor="bob", key="k2", action="set_topic_permission", cluster="prod", subject="refunds", batch=batch
        )
        assert is_refreshed()
        ActionRun.objects.filter(pk=claimed.pk).update(started_at=later - timedelta(minutes=6))
        assert not is_refreshed(), "its process has ended"


def test_a_second_click_while_the_first_is_carried_out_leads_to_a_page_that_waits_for_it(http, brokers, monkeypatch):
    form = hidden(shut(http, ["orders"]))
    with monkeypatch.context() as first_click:
        first_click.setattr(runs, "finish", Mock(side_effect=SystemExit))
        with pytest.raises(SystemExit):
            http.post(PAGE, form)
    address = http.post(PAGE, form)["Location"]
    page = http.get(address)
    assert "RUNNING 0 of 1 are done so far." in text_of(page)
    assert b"hx-trigger" in page.content
    other = Client()
    other.force_login(make_person("vera", Role.VIEWER))
    assert other.get(address).status_code == 403
    ActionRun.objects.update(started_at=timezone.now() - timedelta(minutes=6))
    assert http.get(address).status_code == 404, "its process has ended"


def test_runs_of_one_key_on_several_clusters_are_shown_to_who_may_read_each(http, brokers, now):
    seed.make_cluster("other", now=now, namesrv=brokers.namesrv)
    ann = caller(make_person("bob", Role.ADMIN))
    for cluster, name in (("prod", "orders"), ("other", "refunds")):
        batch = run_many(ann, "set_topic_permission", cluster, {"perm": 4}, [name], key="k").batch
    reader = make_person("rita", Role.VIEWER)
    ClusterRole.objects.create(person=reader, cluster=brokers_cluster(), role=Role.OPERATOR)
    other = Client()
    other.force_login(reader)
    address = f"/actions/together/{batch}/"
    assert names_in(other.get(address)) == ["orders"]
    assert names_in(http.get(address)) == ["orders", "refunds"]


def test_runs_on_brokers_and_on_names_that_nothing_has_are_shown_too(http, brokers):
    ann = caller(make_person("bob", Role.ADMIN))
    done = run_many(ann, "set_broker_write_permission", "prod", {"writing": "no"}, ["nowhere", ""])
    page = http.get(f"/actions/together/{done.batch}/")
    assert names_in(page) == ["nowhere", ""]
    for result in done.results.values():
        assert http.get(f"/actions/{result.run_id}/").status_code == 200


def test_hostile_names_are_escaped_and_isolated(http, brokers, now):
    name = "\u202e<b>&"
    seed.make_topic(brokers_cluster(), name, now=now)
    page = http.get(PAGE)
    assert f"<bdi>{html.escape(name)}</bdi>" in page.content.decode()
    assert "<b>" not in http.get(
        PAGE, {"action": "delete_topic", "subject": [name, "orders"]}
    ).content.decode().replace("Type <b>", "")


def brokers_cluster() -> Any:
    return Ownership.objects.get().cluster
