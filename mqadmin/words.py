"""The texts of the console in its languages: which there are, what is translated, and the catalogues that Django reads.

`manage.py words` writes a catalogue anew (`rewrite`): each text of the Python sources and templates with the
translation that it had, or none yet; what is used nowhere any more goes. Then it compiles it. Nothing is guessed: a
text that changed a little is a new one. Entries stand by source file and text, without line numbers and dates, so that
people who add texts at the same time change different lines.

Needs Babel, which `make test` installs; running the console needs only the compiled file, which Django reads.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from django.utils.translation.template import templatize

ROOT = Path(__file__).parents[1]
LOCALE = "zh_Hans"
CATALOGUE = ROOT / "mqadmin" / "locale" / LOCALE / "LC_MESSAGES" / "django.po"

# Folder → what its texts lie in.
SOURCES = {"mqadmin": "*.py", "templates": "*.html"}

# Name of the function → what its first arguments are.
_CALLS: Mapping[str, tuple[str, ...]] = {
    "gettext": ("text",),
    "gettext_lazy": ("text",),
    "gettext_noop": ("text",),
    "ngettext": ("text", "plural"),
    "ngettext_lazy": ("text", "plural"),
    "pgettext": ("context", "text"),
    "pgettext_lazy": ("context", "text"),
    "npgettext": ("context", "text", "plural"),
    "npgettext_lazy": ("context", "text", "plural"),
}
_LITERAL = r"""u?(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")"""
_TEMPLATE_CALL = re.compile(
    rf"(?<!\w)(_|n?p?gettext)\(\s*({_LITERAL})(?:\s*,\s*({_LITERAL}))?(?:\s*,\s*({_LITERAL}))?", re.DOTALL
)
_PLACEHOLDER = re.compile(r"%\(\w+\)|\{\w*\}|</?\w+")
# Lines of the header that change without any text changing, or say nothing.
_LEFT_OUT = (
    "Project-Id-Version",
    "Report-Msgid-Bugs-To",
    "POT-Creation-Date",
    "PO-Revision-Date",
    "Last-Translator",
    "Language-Team",
    "Generated-By",
)
_NO_DATE = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, order=True)
class Text:
    """One text of the sources. `plural` is "" where it has none; `context` tells equal texts of several meanings."""

    text: str
    plural: str = ""
    context: str = ""


def texts() -> dict[Text, list[str]]:
    """Returns each text of the console with the files that it stands in, in the order of the catalogue."""
    found: dict[Text, list[str]] = {}
    for folder, pattern in SOURCES.items():
        for path in sorted((ROOT / folder).rglob(pattern)):
            name = str(path.relative_to(ROOT))
            for text in sorted(set(_texts_of(path))):
                found.setdefault(text, []).append(name)
    return found


def python_texts(source: str) -> Iterator[Text]:
    """Yields the texts that a Python source passes to gettext. Raises ValueError for one that is no literal."""
    # Each of its functions has that in its name. Most sources call none, and parsing is slow.
    if "gettext" not in source:
        return
    tree = ast.parse(source)
    functions = _imported_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (names := _CALLS.get(_name(node.func, functions))):
            parts = node.args[: len(names)]
            if not all(isinstance(one, ast.Constant) and isinstance(one.value, str) for one in parts):
                raise ValueError(f"line {node.lineno}: what gettext gets must be written there, in one literal")
            yield _text(names, [ast.literal_eval(one) for one in parts])


def template_texts(source: str) -> Iterator[Text]:
    """Yields the texts that a Django template translates."""
    for call in _TEMPLATE_CALL.finditer(templatize(source)):
        names = _CALLS["gettext" if call[1] == "_" else call[1]]
        yield _text(names, [ast.literal_eval(one) for one in call.groups()[1 : 1 + len(names)]])


def rewrite(path: Path = CATALOGUE) -> list[str]:
    """Writes the catalogue anew and compiles it. Returns the texts that it has no translation for."""
    old = read(path) if path.exists() else {}
    catalogue = Catalog(locale=LOCALE, project="mqadmin", fuzzy=False)
    catalogue.header_comment = "# Texts of the console. `manage.py words` keeps this file; translations are by hand."
    for text, files in texts().items():
        known = old.get(text)
        catalogue.add(
            (text.text, text.plural) if text.plural else text.text,
            known.string if known is not None else "",
            locations=[(name, 0) for name in files],
            context=text.context or None,
        )
    written = BytesIO()
    write_po(written, catalogue, width=0, include_lineno=False)
    lines = written.getvalue().decode().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if not line.startswith(tuple(f'"{name}' for name in _LEFT_OUT))))
    compile_to(path.with_suffix(".mo"), path)
    return [text.text for text, message in read(path).items() if not is_translated(message)]


def compile_to(compiled: Path, path: Path = CATALOGUE) -> None:
    """Writes what Django reads."""
    catalogue = _catalogue(path)
    catalogue.creation_date = catalogue.revision_date = _NO_DATE
    with compiled.open("wb") as file:
        write_mo(file, catalogue)


def read(path: Path = CATALOGUE) -> dict[Text, Message]:
    """Returns the entries of a catalogue."""
    return {_key(message): message for message in _catalogue(path) if message.id}


def is_translated(message: Message) -> bool:
    """Tells whether the entry has its translation."""
    return all(message.string) if isinstance(message.string, tuple | list) else bool(message.string)


def unlike(text: Text, message: Message) -> set[str]:
    """Returns placeholders and HTML tags that text and translation do not have alike."""
    translations = message.string if isinstance(message.string, tuple | list) else (message.string or "",)
    wanted = set(_PLACEHOLDER.findall(text.plural or text.text))
    return set().union(*(wanted ^ set(_PLACEHOLDER.findall(one)) for one in translations))


def _texts_of(path: Path) -> Iterable[Text]:
    source = path.read_text()
    try:
        return list(template_texts(source) if path.suffix == ".html" else python_texts(source))
    except ValueError as error:
        raise ValueError(f"{path.relative_to(ROOT)}, {error}") from error


def _text(names: tuple[str, ...], values: list[str]) -> Text:
    return Text(**dict(zip(names, values, strict=True)))


def _imported_names(tree: ast.Module) -> dict[str, str]:
    """Returns the names that a module gives to Django's functions, with their own."""
    return {
        alias.asname or alias.name: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "django.utils.translation"
        for alias in node.names
    }


def _name(function: ast.expr, functions: Mapping[str, str]) -> str:
    """Returns which function is called: one by its imported name, or an attribute of Django's module."""
    return functions.get(function.id, "") if isinstance(function, ast.Name) else getattr(function, "attr", "")


def _catalogue(path: Path) -> Catalog:
    with path.open("rb") as file:
        return read_po(file, locale=LOCALE, abort_invalid=True)


def _key(message: Message) -> Text:
    text, plural = message.id if isinstance(message.id, tuple | list) else (message.id, "")
    return Text(text, plural, message.context or "")
