from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.contrib.auth.models import AbstractUser
from django.test import Client

from mqadmin.people import persons, selectors
from mqadmin.people.models import LogIn, ReadOnlyCluster
from mqadmin.people.roles import Role
from tests.support.people import make_person


def text(response: Any) -> str:
    assert response.status_code == 200
    return html.unescape(response.content.decode())


def test_the_list_shows_who_has_which_role_where(http: Client, cluster: Any) -> None:
    make_person("ann", Role.OPERATOR)
    make_person("bob", Role.VIEWER, on=cluster)
    make_person("eve")
    shut = make_person("shut", Role.ADMIN)
    shut.is_active = False
    shut.save()
    said = text(http.get("/people/"))
    assert re.findall(r'data-row="(\w+)"', said) == ["admin", "ann", "bob", "eve", "shut"]
    for words in ("operator", "local: viewer", "DEACTIVATED"):
        assert words in said
    assert re.findall(r'data-row="(\w+)"', text(http.get("/people/?q=N"))) == ["admin", "ann"]
    assert "Nobody matches" in text(http.get("/people/?q=zzz"))


def test_a_long_list_goes_on(http: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selectors, "PAGE_SIZE", 2)
    for name in "bcd":
        make_person(name)
    (following,) = re.findall(r'href="(\?[^"]+)" rel="next"', text(http.get("/people/")))
    assert re.findall(r'data-row="(\w+)"', text(http.get(f"/people/{following}"))) == ["c", "d"]


def test_a_person_is_shown_with_their_log_ins(http: Client, admin_user: AbstractUser) -> None:
    http.force_login(admin_user)
    said = text(http.get("/people/admin/"))
    assert "Superuser" in said
    assert "(this one)" in said
    make_person("eve")
    assert "sees nothing" in text(http.get("/people/eve/"))
    assert http.get("/people/nobody/").status_code == 404


@pytest.mark.parametrize("address", ["/people/", "/people/ann/", "/people/add/", "/people/ann/role/"])
def test_who_may_not_give_roles_sees_nobody(db: Any, address: str) -> None:
    make_person("ann")
    client = Client()
    client.force_login(make_person("op", Role.OPERATOR))
    assert client.get(address).status_code == 403
    assert "/people/" not in client.get("/").content.decode()


def fields(page: str) -> dict[str, str]:
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page))


def test_a_person_is_added_by_the_page_and_the_password_shown_once(http: Client) -> None:
    shown = text(http.get("/people/add/", {"person": "ann", "role": "operator"}))
    posted = {**fields(shown), "person": "ann", "role": "operator"}
    said = text(http.post("/people/add/", posted))
    (password,) = re.findall(r'<code class="secret">([^<]+)</code>', said)
    assert persons.accounts().get(username="ann").check_password(password)
    again = http.post("/people/add/", posted, follow=True)
    assert password not in text(again)


def test_a_person_without_a_role_has_none(http: Client) -> None:
    page = http.get("/people/add/", {"person": "bob", "role": ""})
    assert "new role none" in " ".join(re.sub("<[^>]*>", " ", page.content.decode()).split())


def test_a_role_is_given_and_taken_back_by_the_page(http: Client, cluster: Any) -> None:
    make_person("ann", Role.VIEWER)
    shown = text(http.get("/people/ann/role/", {"role": "operator"}))
    assert "viewer → <b>operator</b>" in shown
    done = http.post("/people/ann/role/", {**fields(shown), "role": "operator"}, follow=True)
    said = text(done)
    assert "Take it back" in said
    assert persons.accounts().get(username="ann").groups.get().name == "operator"


def test_a_log_in_is_ended_by_the_page(http: Client) -> None:
    make_person("ann", Role.VIEWER)
    other = Client()
    other.force_login(persons.accounts().get(username="ann"))
    one = LogIn.objects.get(person__username="ann")
    shown = text(http.get("/people/ann/log-ins/", {"log_in": one.pk}))
    http.post("/people/ann/log-ins/", {**fields(shown), "log_in": one.pk})
    assert other.get("/").status_code == 302


def test_a_cluster_is_made_read_only_by_the_page(http: Client, cluster: Any) -> None:
    shown = text(http.get("/read-only/local/"))
    http.post("/read-only/local/", {**fields(shown), "read_only": "yes"})
    refused = http.post("/clusters/local/create-topic/", {"topic": "orders"})
    assert refused.status_code == 409
    assert "local is read-only here" in html.unescape(refused.content.decode())


def test_a_new_password_is_made_on_the_persons_page_and_shown_once(http):
    make_person("ann", Role.VIEWER, password="the old one")
    assert 'href="/people/ann/password/"' in http.get("/people/ann/").content.decode()
    seen = http.get("/people/ann/password/").content.decode()
    assert "a new one" in seen
    form = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', seen.partition("confirm-form")[2]))
    shown = http.post("/people/ann/password/", form)
    (secret,) = re.findall(r'<code class="secret">([^<]+)</code>', shown.content.decode())
    assert Client().login(username="ann", password=secret)
    assert secret not in http.post("/people/ann/password/", form, follow=True).content.decode()


def test_a_clusters_page_leads_to_making_it_read_only_and_says_that_it_is(http, cluster):
    page = http.get("/clusters/local/").content.decode()
    assert 'href="/read-only/local/">Make it read-only<' in page
    ReadOnlyCluster.objects.create(cluster=cluster)
    page = http.get("/clusters/local/").content.decode()
    assert "every action on it is refused" in page
    assert ">Lift read-only<" in page
