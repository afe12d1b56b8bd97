"""Live regions: one rendering serves all viewers who may see the same, and holds nothing of any of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.signals import template_rendered
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from consumer.models import HostedGroup
from mqadmin.live import events
from mqadmin.live.events import Change, ChangeKind
from mqadmin.people.roles import Role
from tests.mqadmin.console.test_pages import EVERY_PAGE
from tests.support.people import give_session, make_person

BILLING = ["local", "billing"]
VIEWERS = 4


def region(client: Client, url: str, language: str = "en") -> bytes:
    response = client.get(url, headers={"HX-Request": "true", "Accept-Language": language})
    assert response.status_code == 200
    return bytes(response.content)


def viewer(name: str, *permissions: str) -> Client:
    client = Client()
    user = make_person(name, Role.VIEWER)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    give_session(client, user)
    return client


@pytest.fixture
def rendered() -> Iterator[list[Any]]:
    """Template name and context of each region that is rendered."""
    found = []

    def note(template: Any, context: Any, **_: Any) -> None:
        if template.name and template.name.endswith("_region.html"):
            found.append((template.name, context.flatten()))

    template_rendered.connect(note)
    yield found
    template_rendered.disconnect(note)


@pytest.mark.slow
def test_a_region_is_rendered_once_for_all_viewers(group, rendered):
    viewers = [viewer(f"viewer{number}") for number in range(VIEWERS)]
    for name, args in EVERY_PAGE:
        url = reverse(name, args=args)
        region(viewers[0], url)
        with CaptureQueriesContext(connection) as asked:
            for one in viewers[1:]:
                region(one, url)
        assert len(rendered) == 1, name
        rendered.clear()
        # Each asks who it is (session, account) and what they may (two kinds of permissions); the overview for the
        # names of the clusters, a group's page for the cluster and the roles on it; dead letters for the roles, too,
        # and for the cluster once more: who may see bodies shares no region with who may not. Subscriptions ask on
        # which other clusters the group is.
        more = 2 if "dead_letters" in name else 1 if name == "group_subscriptions" else 0
        assert len(asked) <= (VIEWERS - 1) * (6 + more), name


@pytest.mark.slow
def test_a_region_sees_neither_request_nor_viewer(http, group, rendered):
    HostedGroup.objects.create(group="billing", wanted_instances=2, declared_instances=2)
    for name, args in EVERY_PAGE:
        text = region(http, reverse(name, args=args)).decode()
        ((_, context),) = rendered
        rendered.clear()
        assert not {"request", "user", "perms", "csrf_token", "messages"} & set(context), name
        assert "csrfmiddlewaretoken" not in text, name
        assert http.cookies["mqadmin_session"].value not in text, name


def test_a_change_is_rendered_anew_at_once(http, group, rendered):
    url = reverse("group", args=BILLING)
    assert b"12,049" in region(http, url)
    type(group).objects.filter(pk=group.pk).update(lag=777)
    assert region(http, url).count(b"777") == 0, "nobody was told of it"
    events.publish([Change(ChangeKind.GROUP, "local", "billing")])
    assert b"777" in region(http, url)
    assert len(rendered) == 2


def test_a_change_of_another_cluster_renders_nothing(http, group, rendered):
    url = reverse("groups", args=["local"])
    region(http, url)
    events.publish([Change(ChangeKind.GROUPS, "prod")])
    region(http, url)
    assert len(rendered) == 1


def test_who_has_other_rights_gets_another_region(group, settings, rendered):
    settings.MQADMIN_NAMESRV = group.cluster.namesrv
    HostedGroup.objects.create(group="billing", wanted_instances=2, declared_instances=2)
    url = reverse("group", args=BILLING)
    reader, other_reader = viewer("ann"), viewer("bob")
    operator = viewer("eve", "change_hostedgroup")
    assert b'id="scale"' not in region(reader, url)
    assert b'id="scale"' in region(operator, url)
    assert b'id="scale"' not in region(other_reader, url)
    assert len(rendered) == 2


def test_who_asks_for_the_whole_page_sees_the_database_as_it_is(http, group):
    url = reverse("group", args=BILLING)
    http.get(url)
    type(group).objects.filter(pk=group.pk).update(lag=777)
    assert b"777" in http.get(url).content


def test_a_group_that_is_gone_is_not_found_by_the_region_either(http, group):
    url = reverse("group", args=BILLING)
    group.delete()
    assert http.get(url, headers={"HX-Request": "true"}).status_code == 404


def test_without_its_cache_each_viewer_gets_a_region_of_its_own(http, group, settings, rendered, caplog):
    settings.CACHES = {
        "default": {
            "BACKEND": "django.core.cache.backends.redis.RedisCache",
            "LOCATION": "unix:///nowhere/redis.sock",
        }
    }
    url = reverse("group", args=BILLING)
    region(http, url)
    region(http, url)
    assert len(rendered) == 2
    assert "the cache cannot be reached" in caplog.text
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}


def test_each_viewer_gets_the_region_in_their_language(group, rendered):
    url = reverse("group", args=BILLING)
    texts = {language: [region(viewer(f"{language}{n}"), url, language) for n in range(2)] for language in ("en", "zh")}
    # One rendering a language, whoever came first.
    assert len(rendered) == len(texts)
    assert "堆积量" in texts["zh"][0].decode()
    assert "堆积量" not in texts["en"][0].decode()
    assert [len(set(both)) for both in texts.values()] == [1, 1]
