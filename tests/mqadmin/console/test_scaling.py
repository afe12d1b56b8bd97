"""How many instances of a hosted group run: set from the group's page, refused in words."""

from __future__ import annotations

import html
import re

import pytest
from django.test import Client
from django.urls import reverse

from consumer.models import HostedGroup
from mqadmin.audit.models import AuditEntry
from mqadmin.clusters.models import Group
from mqadmin.people.roles import Role
from tests.support.people import make_person

MEMBERS = "/clusters/local/groups/billing/members/"


@pytest.fixture
def hosted(group, settings) -> HostedGroup:
    settings.MQADMIN_NAMESRV = group.cluster.namesrv
    settings.MQADMIN_INSTANCES = 8
    return HostedGroup.objects.create(group="billing", wanted_instances=2, declared_instances=2)


def set_to(client: Client, wanted: object, group: str = "billing") -> str:
    """What the page says afterwards."""
    response = client.post(reverse("group_instances", args=["local", group]), {"wanted": wanted}, follow=True)
    assert response.redirect_chain == [(f"/clusters/local/groups/{group}/members/", 302)]
    return html.unescape(response.content.decode())


def test_the_number_is_set_and_said(http, hosted):
    text = set_to(http, 5)
    assert "billing is set to 5 instances." in text
    hosted.refresh_from_db()
    assert hosted.wanted_instances == 5


@pytest.mark.parametrize(
    ("next_url", "lands_on"),
    [
        ("/clusters/local/groups/billing/rebalances/?before=x", "/clusters/local/groups/billing/rebalances/?before=x"),
        ("//evil.example/", MEMBERS),
        ("https://evil.example/", MEMBERS),
    ],
)
def test_it_ends_on_the_page_that_it_was_set_from_and_on_no_other_host(http, hosted, next_url, lands_on):
    response = http.post(reverse("group_instances", args=["local", "billing"]), {"wanted": 3, "next": next_url})
    assert response["Location"] == lands_on


def test_two_clicks_are_one_change(http, hosted):
    page = http.get(MEMBERS).content.decode()
    form = dict(re.findall(r'<input type="hidden" name="(key|fingerprint|next)" value="([^"]+)"', page))
    assert len(form) == 3
    for _click in range(2):
        response = http.post(reverse("group_instances", args=["local", "billing"]), form | {"wanted": 5}, follow=True)
        assert "billing is set to 5 instances." in html.unescape(response.content.decode())
    assert AuditEntry.objects.count() == 1


def test_a_number_that_somebody_else_changed_meanwhile_is_refused_in_words(http, hosted):
    page = http.get(MEMBERS).content.decode()
    form = dict(re.findall(r'<input type="hidden" name="(key|fingerprint|next)" value="([^"]+)"', page))
    HostedGroup.objects.update(wanted_instances=7)
    response = http.post(reverse("group_instances", args=["local", "billing"]), form | {"wanted": 5}, follow=True)
    assert "billing has changed since this page was opened" in html.unescape(response.content.decode())
    hosted.refresh_from_db()
    assert hosted.wanted_instances == 7


def test_nobody_wanted_is_a_number_too(http, hosted):
    assert "billing is set to 0 instances." in set_to(http, 0)


@pytest.mark.parametrize("wanted", ["", "many", "-1", "2.5", "٣", "1" * 30])
def test_what_is_no_whole_number_changes_nothing(http, hosted, wanted):
    assert "must be a whole number" in set_to(http, wanted)
    hosted.refresh_from_db()
    assert hosted.wanted_instances == 2


def test_more_than_can_run_is_refused_with_the_limit(http, hosted):
    assert "Between 0 and 8 instances can run here" in set_to(http, 9)


def test_a_group_that_others_host_shows_no_form_and_is_refused(http, group: Group):
    assert "Instances wanted" not in http.get(MEMBERS).content.decode()
    assert "is not hosted by this project" in set_to(http, 3)


def test_who_lacks_the_right_sees_no_form_and_is_refused(hosted):
    reader = Client()
    reader.force_login(make_person("reader", Role.VIEWER))
    page = reader.get(MEMBERS).content.decode()
    assert "0 of 2 instances are running" in page
    assert "Instances wanted" not in page
    assert "ask an administrator" in set_to(reader, 3)
    hosted.refresh_from_db()
    assert hosted.wanted_instances == 2


def test_only_a_post_with_its_token_changes_anything(hosted, django_user_model):
    careful = Client(enforce_csrf_checks=True)
    careful.force_login(django_user_model.objects.create_superuser("boss"))
    url = reverse("group_instances", args=["local", "billing"])
    assert careful.get(url, {"wanted": 4}).status_code == 200
    response = careful.post(url, {"wanted": 4})
    assert response.status_code == 403
    assert "Nothing was changed" in response.content.decode()
    hosted.refresh_from_db()
    assert hosted.wanted_instances == 2


def test_a_group_that_does_not_exist_is_not_found(http, cluster):
    assert http.post(reverse("group_instances", args=["local", "nobody"]), {"wanted": 1}).status_code == 404
