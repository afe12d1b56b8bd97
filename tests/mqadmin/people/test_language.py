"""Which language a page is in: the person's choice, else the browser's."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from mqadmin.people.models import ChosenLanguage

CHINESE = {"Accept-Language": "zh-CN,zh;q=0.9,en;q=0.5"}
FORM = {"username": "ann", "password": "long-enough-for-all"}


@pytest.fixture
def ann(db: None, django_user_model: Any) -> Any:
    return django_user_model.objects.create_superuser("ann", password=FORM["password"])


def language_of(client: Client, address: str = "/login/", **headers: str) -> str:
    page = client.get(address, follow=True, headers=headers)
    found = re.search('<html lang="([^"]+)"', page.content.decode())
    assert found is not None
    assert page["Content-Language"] == found[1]
    return found[1]


def choose(client: Client, code: str, **form: str) -> Any:
    return client.post("/language/", {"language": code, **form})


@pytest.mark.parametrize(
    ("asked", "answered"),
    [("zh-CN,zh;q=0.9", "zh-hans"), ("zh", "zh-hans"), ("de,en;q=0.5", "en"), ("de", "en"), ("", "en")],
)
def test_the_browser_decides_where_nobody_chose(db: None, asked: str, answered: str) -> None:
    assert language_of(Client(), **{"Accept-Language": asked}) == answered


def test_a_page_says_that_it_depends_on_the_language_and_the_cookie(db: None) -> None:
    page = Client().get("/login/", headers=CHINESE)
    assert {"Accept-Language", "Cookie"} <= set(re.split(", *", page["Vary"]))
    assert "登录" in page.content.decode()


def test_a_choice_of_nobody_is_kept_in_a_cookie(db: None) -> None:
    client = Client(headers=CHINESE)
    answer = choose(client, "en", next="/login/?next=/people/")
    assert answer["Location"] == "/login/?next=/people/"
    assert answer.cookies["mqadmin_language"]["httponly"]
    assert language_of(client) == "en"


def test_a_choice_is_kept_with_the_account_for_the_next_log_in_elsewhere(ann: Any) -> None:
    here = Client()
    here.force_login(ann)
    choose(here, "zh-hans")
    assert language_of(here, "/people/") == "zh-hans"
    elsewhere = Client(headers={"Accept-Language": "en"})
    assert language_of(elsewhere) == "en"
    elsewhere.post("/login/", FORM)
    assert language_of(elsewhere, "/people/") == "zh-hans"


def test_the_account_wins_over_the_cookie_of_a_shared_browser(ann: Any) -> None:
    client = Client()
    client.force_login(ann)
    choose(client, "zh-hans")
    other = Client()
    choose(other, "en")
    other.post("/login/", FORM)
    assert language_of(other, "/people/") == "zh-hans"


def test_the_choice_asks_the_database_nothing_between_log_ins(ann: Any) -> None:
    client = Client()
    client.force_login(ann)
    choose(client, "zh-hans")
    with CaptureQueriesContext(connection) as asked:
        assert language_of(client, "/people/") == "zh-hans"
    assert not [one["sql"] for one in asked if ChosenLanguage._meta.db_table in one["sql"]]


def test_a_database_that_is_away_leaves_the_page_to_say_so(ann: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(raise_request_exception=False, headers=CHINESE)
    client.force_login(ann)

    def away(_self: Any) -> Any:
        raise OperationalError

    monkeypatch.setattr(SessionStore, "load", away)
    page = client.get("/people/")
    assert page.status_code == 500
    assert "<h1>控制台内部出错</h1>" in page.content.decode()


def test_a_language_that_is_not_offered_changes_nothing(ann: Any) -> None:
    client = Client()
    client.force_login(ann)
    answer = choose(client, "tlh", next="//evil.example/")
    assert answer["Location"] == "/"
    assert "mqadmin_language" not in answer.cookies
    assert language_of(client, "/people/") == "en"


def test_a_choice_needs_the_forms_token(ann: Any) -> None:
    assert Client(enforce_csrf_checks=True).post("/language/", {"language": "zh-hans"}).status_code == 403


def test_each_language_stands_under_its_own_name_with_the_present_one_marked(db: None) -> None:
    page = Client().get("/login/", headers=CHINESE).content.decode()
    assert re.search('value="zh-hans" lang="zh-hans" aria-pressed="true">简体中文<', page)
    assert re.search('value="en" lang="en" aria-pressed="false">English<', page)
