"""Logging in and out, and the theme."""

from __future__ import annotations

import pytest
from django.test import Client


@pytest.fixture
def stranger(db, django_user_model) -> Client:
    django_user_model.objects.create_superuser("admin", password="long-enough-for-all")
    return Client(enforce_csrf_checks=True)


def token(client: Client) -> str:
    client.get("/login/")
    return client.cookies["mqadmin_csrf"].value


def test_who_logs_in_lands_where_they_wanted(stranger):
    form = {
        "username": "admin",
        "password": "long-enough-for-all",
        "next": "/clusters/local/",
        "csrfmiddlewaretoken": token(stranger),
    }
    response = stranger.post("/login/", form)
    assert response["Location"] == "/clusters/local/"
    assert stranger.get("/").status_code == 200


def test_a_wrong_password_is_told_without_saying_which_half_was_wrong(stranger):
    form = {"username": "admin", "password": "wrong", "csrfmiddlewaretoken": token(stranger)}
    response = stranger.post("/login/", form)
    assert "Name or password is wrong" in response.content.decode()
    assert stranger.get("/").status_code == 302


def test_nobody_is_sent_to_another_host(stranger):
    form = {"username": "admin", "password": "long-enough-for-all", "next": "//evil.example/"}
    response = stranger.post("/login/", {**form, "csrfmiddlewaretoken": token(stranger)})
    assert response["Location"] == "/"


def test_a_form_without_its_token_is_refused_with_a_page_that_helps(stranger):
    response = stranger.post("/login/", {"username": "admin", "password": "long-enough-for-all"})
    assert response.status_code == 403
    assert "This form is out of date" in response.content.decode()


def test_logging_out_ends_the_session_and_needs_a_post(http):
    assert http.get("/logout/").status_code == 405
    assert http.post("/logout/").status_code == 302
    assert http.get("/").status_code == 302


def test_the_theme_is_kept_in_a_cookie_and_shown_from_the_first_byte(http):
    response = http.post("/theme/", {"theme": "dark", "next": "/clusters/"})
    assert response["Location"] == "/clusters/"
    assert b'data-theme="dark"' in http.get("/").content


def test_the_system_theme_needs_no_cookie(http):
    http.post("/theme/", {"theme": "dark"})
    http.post("/theme/", {"theme": ""})
    assert b"data-theme=" not in http.get("/").content


@pytest.mark.parametrize("theme", ["purple", '"><script>'])
def test_a_theme_that_does_not_exist_is_ignored(http, theme):
    http.post("/theme/", {"theme": theme})
    http.cookies["mqadmin_theme"] = theme
    assert b"data-theme=" not in http.get("/").content


def test_the_theme_sends_nobody_to_another_host(http):
    assert http.post("/theme/", {"theme": "dark", "next": "https://evil.example/"})["Location"] == "/"
