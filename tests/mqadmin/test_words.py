"""Every text of the console has its Chinese, and the compiled catalogue is the one that is read here."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from babel.messages.catalog import Message
from babel.messages.mofile import read_mo

from mqadmin import words
from mqadmin.words import Text

REMEDY = (
    "Run `manage.py words`, and write the Chinese into mqadmin/locale/zh_Hans/LC_MESSAGES/django.po, then run it again"
)


@cache
def entries() -> dict[Text, Message]:
    return words.read()


@cache
def used() -> dict[Text, list[str]]:
    return words.texts()


def complain(complaints: list[str]) -> None:
    assert not complaints, "\n".join(["", *complaints, REMEDY])


def test_every_text_is_in_the_catalogue() -> None:
    complain([f"{', '.join(files)}: {text.text!r} is new" for text, files in used().items() if text not in entries()])


def test_every_text_has_its_chinese() -> None:
    complain([f"{text.text!r} has no Chinese" for text, one in entries().items() if not words.is_translated(one)])


def test_no_translation_is_a_guess() -> None:
    complain([f"{text.text!r} is fuzzy" for text, one in entries().items() if one.fuzzy])


def test_no_entry_is_left_over() -> None:
    complain([f"{text.text!r} is used nowhere" for text in entries() if text not in used()])
    left_over = [line for line in words.CATALOGUE.read_text().splitlines() if line.startswith("#~")]
    complain(left_over)


def test_translations_have_the_placeholders_and_tags_of_their_texts() -> None:
    complain(
        [
            f"{text.text!r} and its Chinese differ in {', '.join(sorted(differing))}"
            for text, one in entries().items()
            if words.is_translated(one) and (differing := words.unlike(text, one))
        ]
    )


def test_the_compiled_catalogue_is_what_the_catalogue_compiles_to() -> None:
    compiled = compiled_words(words.CATALOGUE.with_suffix(".mo"))
    written = {text: _words(one) for text, one in entries().items()}
    differing = [text for text in compiled | written if compiled.get(text) != written.get(text)]
    complain([f"{text.text!r} is compiled otherwise" for text in differing])


def compiled_words(path: Path) -> dict[Text, tuple[str, ...]]:
    """The translations of a compiled catalogue, of which Babel reads contexts as bytes."""
    with path.open("rb") as file:
        return {_text(message): _words(message) for message in read_mo(file) if message.id}


def _text(message: Message) -> Text:
    text, plural = message.id if isinstance(message.id, tuple | list) else (message.id, "")
    context: str | bytes = message.context or ""
    return Text(text, plural, context.decode() if isinstance(context, bytes) else context)


def _words(message: Message) -> tuple[str, ...]:
    return tuple(message.string) if isinstance(message.string, tuple | list) else (str(message.string),)


def test_texts_are_found_in_sources_and_templates() -> None:
    source = """
from django.utils.translation import gettext_lazy as called_so, ngettext, pgettext
title = called_so("Delete")
n = ngettext("%(n)d day", "%(n)d days", 2)
side = pgettext("of a ship", "port")
other = gettext_of_another_module("Not ours")
"""
    assert set(words.python_texts(source)) == {
        Text("Delete"),
        Text("%(n)d day", plural="%(n)d days"),
        Text("port", context="of a ship"),
    }
    template = """{% load i18n %}<p title="{% translate 'It is' %}">{% translate "left" context "a side" %}
      {% blocktranslate count n=2 %}{{ n }} day{% plural %}{{ n }} days{% endblocktranslate %}</p>"""
    assert set(words.template_texts(template)) == {
        Text("It is"),
        Text("left", context="a side"),
        Text("%(n)s day", plural="%(n)s days"),
    }


def test_a_text_that_is_put_together_is_refused() -> None:
    with pytest.raises(ValueError, match="line 1"):
        list(words.python_texts('from django.utils.translation import gettext as _; _("Delete " + name)'))


@pytest.mark.slow
def test_rewriting_keeps_what_is_translated_and_changes_nothing_else(tmp_path: Path) -> None:
    copy = tmp_path / "django.po"
    copy.write_bytes(words.CATALOGUE.read_bytes())
    assert words.rewrite(copy) == []
    assert copy.read_text() == words.CATALOGUE.read_text()
    assert compiled_words(copy.with_suffix(".mo")).keys() == entries().keys()


@pytest.mark.parametrize(
    ("text", "chinese", "differing"),
    [
        ("%(n)s of %(of)s", "共 %(of)s 中的 %(n)s", set()),
        ("%(n)s of %(of)s", "%(n)s", {"%(of)"}),
        ("since {}", "自从", {"{}"}),
        ("Type <b>%(x)s</b>", "输入 %(x)s", {"<b", "</b"}),
    ],
)
def test_a_translation_that_lost_a_placeholder_is_noticed(text: str, chinese: str, differing: set[str]) -> None:
    assert words.unlike(Text(text), Message(text, chinese)) == differing
