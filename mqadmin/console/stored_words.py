"""Sentences that rows keep, in the viewer's language.

The audit, runs and what went wrong with a broker are kept as English sentences: whoever reads, exports or checks them
gets the same text, whoever wrote it. A page shows such a sentence in its viewer's language all the same. It was made
from a text of the catalogue with names and numbers put in; that text is found again, and its translation gets the same
names and numbers. What no text matches (a broker's own words, an older version's sentence) stays as it is.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from django.conf import settings
from django.utils.translation import get_language, gettext, to_locale

from mqadmin.console.sentences import one_after_another

# Of one stored text: what is longer is not taken apart.
SENTENCES_MAX = 12
CHARS_MAX = 2000
# A text that says less outside its placeholders would match anything.
LETTERS_MIN = 8
# Sentences that the pages of an install show are few, and repeated in each row.
REMEMBERED_MAX = 2048

# It gets stored texts here, never one that is written here.
_translation_of = gettext

_PLACEHOLDER = re.compile(r"%\((\w+)\)(?:\.\d)?[sdfr]|%%")
_SENTENCE_END = re.compile(r"(?<=[.:;?]) ")
_MO_MAGIC = 0x950412DE
_CONTEXT_END = "\x04"


@dataclass(frozen=True, slots=True)
class Pattern:
    """A text of the catalogue as it looks with values in it, and its translation.

    `literals` stand around the placeholders `names`, one more than these. `longest` is the longest of them: what lacks
    it needs no matching.
    """

    literals: tuple[str, ...]
    names: tuple[str, ...]
    longest: str
    letter_count: int
    translation: str

    def values_in(self, text: str) -> dict[str, str] | None:
        """Returns the values that are put in, each at least a character; None for another text.

        In time that grows with the text's length: hostile text of a broker comes here, too. Each placeholder takes as
        little as it can, the last one all that is left.
        """
        first, last = self.literals[0], self.literals[-1]
        if not text.startswith(first) or not text.endswith(last):
            return None
        at, ends = len(first), len(text) - len(last)
        values: dict[str, str] = {}
        for number, name in enumerate(self.names, 1):
            literal = self.literals[number]
            next_at = ends if number == len(self.names) else text.find(literal, at + 1, ends)
            if next_at <= at or values.setdefault(name, text[at:next_at]) != text[at:next_at]:
                return None
            at = next_at + len(literal)
        return values


def in_viewers_language(text: str) -> str:
    """Returns a stored English text in the active language; the text itself where it is none of ours."""
    language = get_language() or settings.LANGUAGE_CODE
    if not text or len(text) > CHARS_MAX or language == settings.LANGUAGE_CODE:
        return text
    return _translated(text, language)


@lru_cache(REMEMBERED_MAX)
def _translated(text: str, language: str) -> str:
    """Translates the longest runs of sentences that are one text of the catalogue."""
    sentences = _SENTENCE_END.split(text)[:SENTENCES_MAX]
    if " ".join(sentences) != text:
        return text
    told = ""
    is_translated = False
    while sentences:
        for count in range(len(sentences), 0, -1):
            run = " ".join(sentences[:count])
            found = _whole(run, language)
            if found is not None or count == 1:
                break
        del sentences[:count]
        # Behind what stays English stands the space that was there.
        joined = one_after_another([told, found or run]) if is_translated else f"{told} {found or run}"
        told = joined if told else found or run
        is_translated = found is not None
    return told


def _whole(text: str, language: str) -> str | None:
    """Returns the translation of a text that is one of the catalogue's; None for any other."""
    if (same := _translation_of(text)) != text:
        return same
    for pattern in _patterns(language):
        if pattern.longest in text and (found := pattern.values_in(text)) is not None:
            # The reason that a sentence quotes is one itself.
            return pattern.translation % {name: _value(value, language) for name, value in found.items()}
    return None


def _value(value: str, language: str) -> str:
    """Returns a value that is put in: several reasons one by one, a name as it is."""
    return "; ".join(_translated(part, language) if " " in part else part for part in value.split("; "))


@cache
def _patterns(language: str) -> tuple[Pattern, ...]:
    """Returns the texts with placeholders, those first that say most besides them."""
    found = []
    for folder in settings.LOCALE_PATHS:
        path = Path(folder) / to_locale(language) / "LC_MESSAGES" / "django.mo"
        if path.exists():
            found += [one for text, words in _entries(path.read_bytes()) if (one := _pattern(text, words)) is not None]
    return tuple(sorted(found, key=lambda pattern: -pattern.letter_count))


def _pattern(text: str, translation: str) -> Pattern | None:
    pieces = _PLACEHOLDER.split(text)
    literals, names = [pieces[0]], list[str]()
    for name, literal in zip(pieces[1::2], pieces[2::2], strict=True):
        if name is None:
            literals[-1] += f"%{literal}"
        else:
            names.append(name)
            literals.append(literal)
    letter_count = sum(character.isalpha() for literal in literals for character in literal)
    if not names or letter_count < LETTERS_MIN:
        return None
    # Numbers are put in as they stood. What a singular leaves out is its count.
    return Pattern(
        tuple(literals),
        tuple(names),
        max(literals, key=len),
        letter_count,
        _PLACEHOLDER.sub(lambda match: _slot(match[1], names), translation),
    )


def _slot(name: str | None, names: Collection[str]) -> str:
    if name is None:
        return "%%"
    return f"%({name})s" if name in names else "1"


def _entries(compiled: bytes) -> Iterator[tuple[str, str]]:
    """Yields the texts and translations of a compiled catalogue (GNU gettext's .mo), singular and plural each."""
    order = "<" if struct.unpack_from("<I", compiled)[0] == _MO_MAGIC else ">"
    _version, count, texts_at, translations_at = struct.unpack_from(f"{order}4I", compiled, 4)
    for number in range(count):
        text, translation = (
            _string(compiled, *struct.unpack_from(f"{order}2I", compiled, at + 8 * number))
            for at in (texts_at, translations_at)
        )
        forms, translations = text.rpartition(_CONTEXT_END)[2].split("\0"), translation.split("\0")
        for index, form in enumerate(forms):
            yield form, translations[min(index, len(translations) - 1)]


def _string(compiled: bytes, length: int, offset: int) -> str:
    return compiled[offset : offset + length].decode()
