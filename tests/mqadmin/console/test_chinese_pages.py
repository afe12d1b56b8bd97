"""Every page in Chinese, rendered and read: no English sentence is left on it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import get_resolver

from mqadmin.clusters.models import Cluster
from tests.mqadmin.console.test_pages import address_of
from tests.mqadmin.test_words_wrapped import Shown

# Two words of small letters, which no name here has.
ENGLISH = re.compile(r"\b[a-z]{2,} [a-z]{2,}\b")
# What is typed as it stands, inside sentences.
COMMANDS = re.compile(r"manage\.py \w+|celery -A mqadmin worker -Q \w+ -c 1")
# Pages of other packages, and what is no page.
NOT_OURS = frozenset({"openid_connect_login", "openid_connect_callback", "audit_export", "api:docs"})
NAMES = sorted(name for name in get_resolver().reverse_dict if isinstance(name, str) and name not in NOT_OURS)


@pytest.fixture
def chinese(http: Client, group: Any) -> Client:
    # Nothing answers at this port: what cannot be reached is told, too.
    Cluster.objects.update(namesrv="127.0.0.1:1")
    http.defaults["HTTP_ACCEPT_LANGUAGE"] = "zh-CN"
    return http


def english_in(html: str) -> list[str]:
    reader = Shown()
    reader.feed(html)
    texts = [" ".join(COMMANDS.sub("", words).split()) for words in reader.words]
    return [words for words in texts if ENGLISH.search(words)]


@pytest.mark.slow
def test_no_page_has_english(chinese: Client) -> None:
    """A person, job, token or run that is not there leads to the page that says so."""
    english = {}
    for name in NAMES:
        page = chinese.get(address_of(name))
        assert page.status_code in (200, 302, 403, 404, 405), name
        if page.status_code != 405:
            english[name] = english_in(page.content.decode())
    assert {name: texts for name, texts in english.items() if texts} == {}


@pytest.mark.parametrize("kind", ["topic", "group"])
def test_a_refused_file_has_no_english(chinese: Client, kind: str) -> None:
    file = f"{kind}s:\n  orders:\n    nonsense: 1\n"
    page = chinese.post(address_of("configuration"), {"text": file})
    assert "第 3 行" in page.content.decode()
    assert english_in(page.content.decode()) == []


def test_english_is_found() -> None:
    page = '<p>主题</p><p title="two words">orders</p><p>Run <code>not read</code> manage.py up</p><p>it is English</p>'
    assert english_in(page) == ["two words", "it is English"]
