"""Pages for when something is wrong: they help, and they need nothing that could be what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.test import Client
from django.urls import path

from mqadmin.urls import urlpatterns as pages

TEMPLATES = Path(__file__).parents[3] / "templates"


def broken(request: HttpRequest) -> HttpResponse:
    raise ValueError("an error of our own")


def forbidden(request: HttpRequest) -> HttpResponse:
    raise PermissionDenied


urlpatterns = [path("broken/", broken), path("forbidden/", forbidden), *pages]


@pytest.fixture
def calm(http: Client) -> Client:
    """Answers an error as a browser sees it, instead of raising it in the test."""
    http.raise_request_exception = False
    return http


@pytest.mark.urls(__name__)
def test_a_broken_page_says_that_messages_go_on(calm):
    response = calm.get("/broken/")
    assert response.status_code == 500
    assert "Brokers and consumers don't depend on this page" in response.content.decode()
    assert "an error of our own" not in response.content.decode()


@pytest.mark.urls(__name__)
def test_a_forbidden_page_says_who_can_help(calm):
    response = calm.get("/forbidden/")
    assert response.status_code == 403
    assert "Ask an administrator" in response.content.decode()


@pytest.mark.parametrize("name", ["404.html", "400.html", "403.html", "403_csrf.html", "500.html"])
def test_error_pages_need_neither_request_nor_database(name):
    assert "To the overview" in render_to_string(name)


def test_the_page_for_errors_of_our_own_extends_nothing():
    assert "{% extends" not in (TEMPLATES / "500.html").read_text()


@pytest.mark.urls(__name__)
@pytest.mark.parametrize(
    ("address", "words"),
    [("/broken/", "控制台内部出错"), ("/forbidden/", "无权执行此操作"), ("/nowhere/", "此地址下没有内容")],
)
def test_error_pages_are_in_the_viewers_language(calm, address, words):
    page = calm.get(address, headers={"Accept-Language": "zh-CN"}).content.decode()
    assert '<html lang="zh-hans"' in page
    assert f"<h1>{words}</h1>" in page
