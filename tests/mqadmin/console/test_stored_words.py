"""Rows keep English sentences; pages show them in the viewer's language."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest
from django.test import Client
from django.utils.translation import override

from mqadmin import words
from mqadmin.audit.models import AuditEntry
from mqadmin.console.stored_words import LETTERS_MIN, in_viewers_language
from mqadmin.words import Text

CHINESE = "zh-hans"
PLACEHOLDER = re.compile(r"%\((\w+)\)(?:\.\d)?([sdf])")


@pytest.fixture
def in_chinese() -> Any:
    with override(CHINESE):
        yield


@cache
def used() -> dict[Text, list[str]]:
    return words.texts()


def filled(text: str) -> str:
    """Returns a text with a value in each of its placeholders."""
    values = {name: f"«{name}»" if kind == "s" else 7 for name, kind in PLACEHOLDER.findall(text)}
    return text % values if values else text


def test_an_english_page_shows_what_is_stored() -> None:
    with override("en"):
        assert in_viewers_language("Nothing was changed.") == "Nothing was changed."


@pytest.mark.usefixtures("in_chinese")
@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ("", ""),
        ("No outcome is known.", "结果未知。"),
        ("orders is being changed at this moment.", "orders 正在被变更。"),
        ("1 member is online; what now?", "1 member is online; what now?"),
        ("the broker's own words: 100 %s", "the broker's own words: 100 %s"),
        # Several sentences, one of which is the broker's.
        ("No outcome is known. store is full", "结果未知。store is full"),
        # A sentence in a sentence.
        (
            "The group is deleted; its topic %RETRY%g is not: No outcome is known.",
            "消费者组已删除，但其主题 %RETRY%g 未删除：结果未知。",
        ),
        # Both forms of a count.
        ("1 dead letter is deleted.", "将删除 1 条死信。"),
        ("12,049 dead letters are deleted.", "将删除 12,049 条死信。"),
        ("10.0.0.5:9876 answers slowly: it took 2.5 s.", "10.0.0.5:9876 应答缓慢：用时 2.5 秒。"),
        # A name stays what it is, even where it is a word of the catalogue.
        ("none is being changed at this moment.", "none 正在被变更。"),
    ],
)
def test_a_chinese_page_shows_its_chinese(stored: str, shown: str) -> None:
    assert in_viewers_language(stored) == shown


@pytest.mark.usefixtures("in_chinese")
@pytest.mark.slow
def test_each_text_that_may_be_stored_is_found_again() -> None:
    """Whatever an action says is stored in English: its Chinese has the same values."""
    folders = re.compile("mqadmin/(?!console|api)")
    missed = []
    for text, files in used().items():
        plain = PLACEHOLDER.sub("", text.text)
        if not any(map(folders.match, files)) or sum(map(str.isalpha, plain)) < LETTERS_MIN or "." not in text.text[-1]:
            continue
        for form in filter(None, (text.text, text.plural)):
            shown = in_viewers_language(filled(form))
            values = {value for value in re.findall("«[^»]*»", filled(form)) if value in filled(text.plural or form)}
            if shown == filled(form) or not all(value in shown for value in values):
                missed.append(f"{filled(form)} → {shown}")
    assert not missed, "\n".join(missed)


@pytest.mark.usefixtures("in_chinese")
@pytest.mark.parametrize(
    "piece", ["x did not answer within ", " refused y with ", "y holds a character other than ", " is being changed "]
)
def test_a_brokers_text_that_is_made_of_ours_is_shown_and_holds_nobody_up(piece: str) -> None:
    hostile = (piece * 200)[:1999]
    assert in_viewers_language(hostile)


@pytest.mark.slow
@pytest.mark.usefixtures("in_chinese")
def test_one_that_counts_nothing_is_one() -> None:
    singulars = [text.text for text in used() if text.plural and PLACEHOLDER.search(text.text)]
    assert any("%(n)" not in text for text in singulars)
    for text in singulars:
        assert in_viewers_language(filled(text))


@pytest.mark.usefixtures("in_chinese")
def test_what_is_too_long_stays_as_it_is() -> None:
    long = "No outcome is known. " * 200
    assert in_viewers_language(long) == long


def test_a_refusal_in_chinese_is_audited_in_english(http: Client, cluster: Any) -> None:
    form = {"cluster": "local", "read_only": "yes"}
    http.post("/read-only/local/", {**form, "fingerprint": "stale"}, headers={"Accept-Language": "zh"})
    entry = AuditEntry.objects.get()
    assert entry.reason.startswith("local has changed since this page was opened.")
    page = http.get(f"/audit/{entry.number}/", headers={"Accept-Language": "zh"}).content.decode()
    assert "页面打开后 local 已发生变化" in page
    assert entry.reason in http.get(f"/audit/{entry.number}/").content.decode().replace("&#x27;", "'")


def test_a_refusal_is_told_in_the_language_of_who_asked(http: Client, cluster: Any) -> None:
    form = {"cluster": "local", "read_only": "yes", "fingerprint": "stale"}
    page = http.post("/read-only/local/", form, headers={"Accept-Language": "zh"})
    assert page.status_code == 409
    assert "页面打开后 local 已发生变化" in page.content.decode()
