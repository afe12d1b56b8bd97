"""No text of a page is written past gettext: in templates, in declarations of actions and forms, in what pages say.

It reads the sources, so it finds the text of a page that no test opens. What it cannot know is whether a word is a
name (of a protocol, a program, a unit): those are listed here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from mqadmin.words import ROOT

TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
SOURCES = [
    path
    for path in sorted((ROOT / "mqadmin").rglob("*.py"))
    if not {"migrations", "management", "supervision"} & set(path.parts)
]

# Names, which are the same in each language.
NAMES = frozenset({"mqadmin", "English", "简体中文", "REST", "Celery", "CSV", "Parquet"})
# Elements whose text is nobody's sentence.
CODE = frozenset({"code", "pre", "script", "style"})
SHOWN_ATTRIBUTES = frozenset({"title", "aria-label", "placeholder", "alt"})
# Keyword arguments that pages show.
SHOWN_KEYWORDS = frozenset({"title", "label", "help_text", "note", "words", "warnings", "empty_label", "detail"})
# The description of the REST API is English: its serializers' words are no page's.
DESCRIPTION = ROOT / "mqadmin" / "api"
# Errors whose text pages show.
SHOWN_ERRORS = frozenset(
    {
        "ActionRefused",
        "ActionUnavailable",
        "PermissionRefused",
        "ValidationError",
        "WrongSubjects",
        "DocumentError",
        "PlanError",
    }
)
GETTEXT = re.compile(r"_|n?p?gettext(_lazy|_noop)?")
SENTENCE = re.compile(r"^[A-Z][a-z’']* [a-z]|[a-z] [a-z]+[.:]$")
LETTERS = re.compile(r"[^\W\d_]{2,}")

TRANSLATED = re.compile(
    r"{%\s*(blocktranslate|blocktrans)\b.*?{%\s*end\1\s*%}|{%\s*comment\s*%}.*?{%\s*endcomment\s*%}", re.S
)
TAG = re.compile(r"{%.*?%}|{{.*?}}|{#.*?#}", re.S)


class Shown(HTMLParser):
    """Gathers what a reader sees or hears of a template: text, and attributes that are read out."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self._inside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.words += [value for name, value in attrs if name in SHOWN_ATTRIBUTES and value]
        if tag in CODE:
            self._inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._inside and self._inside[-1] == tag:
            self._inside.pop()

    def handle_data(self, data: str) -> None:
        if not self._inside:
            self.words.append(data)


def is_text(words: str) -> bool:
    """Tells whether it has a word that is no name."""
    return any(word not in NAMES for word in LETTERS.findall(words))


def shown_of_template(source: str) -> list[str]:
    parser = Shown()
    parser.feed(TAG.sub(" ", TRANSLATED.sub(" ", source)))
    return [words.strip() for words in parser.words if is_text(words)]


def literals(node: ast.expr) -> Iterator[ast.Constant]:
    """Yields the literals of which a value consists, where gettext does not get them."""
    match node:
        case ast.Constant(value=str()):
            yield node
        case ast.BinOp(left=left):
            yield from literals(left)
        case ast.JoinedStr(values=parts) | ast.Tuple(elts=parts) | ast.List(elts=parts):
            for part in parts:
                yield from literals(part)
        case ast.IfExp(body=one, orelse=other):
            yield from literals(one)
            yield from literals(other)
        case _:
            return


def name_of(function: ast.expr) -> str:
    return function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")


def shown_of_python(source: str) -> Iterator[tuple[int, str]]:
    """Yields the literals that declarations and refusals show, with their lines."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or GETTEXT.fullmatch(name_of(node.func)):
            continue
        shown = [one.value for one in node.keywords if one.arg in SHOWN_KEYWORDS]
        if name_of(node.func) in SHOWN_ERRORS:
            shown += node.args[:1]
        for value in shown:
            for literal in literals(value):
                if is_text(str(literal.value)):
                    yield literal.lineno, str(literal.value)


def strings(node: ast.AST) -> set[int]:
    return {id(one) for one in ast.walk(node) if isinstance(one, ast.Constant)}


def nobody_reads(node: ast.AST) -> bool:
    """Tells whether the strings in it are translated, logged, asserted or a docstring."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="logger"))) | ast.Assert() | ast.Expr(value=ast.Constant()):
            return True
        case ast.Call(func=function):
            return GETTEXT.fullmatch(name_of(function)) is not None
        case _:
            return False


def sentences_of(source: str) -> Iterator[tuple[int, str]]:
    """Yields the strings that read like a sentence and that somebody reads as they are written."""
    tree = ast.parse(source)
    spared = set().union(*(strings(node) for node in ast.walk(tree) if nobody_reads(node)))
    for node in ast.walk(tree):
        is_read = isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in spared
        if is_read and SENTENCE.search(node.value):
            yield node.lineno, node.value


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: str(path.relative_to(ROOT)))
def test_template_writes_no_text_past_gettext(path: Path) -> None:
    assert shown_of_template(path.read_text()) == []


def test_declarations_and_refusals_write_no_text_past_gettext() -> None:
    sources = [path for path in SOURCES if not path.is_relative_to(DESCRIPTION)]
    found = [f"{p.relative_to(ROOT)}:{line}: {text}" for p in sources for line, text in shown_of_python(p.read_text())]
    assert not found, "\n" + "\n".join(found)


def test_problems_have_titles_and_remedies_that_are_translated() -> None:
    source = (DESCRIPTION / "problems.py").read_text()
    assert [text for _line, text in sentences_of(source)] == []


def test_what_pages_say_goes_through_gettext() -> None:
    faces = [path for path in SOURCES if path.is_relative_to(ROOT / "mqadmin" / "console")]
    found = [f"{p.relative_to(ROOT)}:{line}: {text}" for p in faces for line, text in sentences_of(p.read_text())]
    assert not found, "\n" + "\n".join(found)


def test_a_text_past_gettext_is_found() -> None:
    template = (
        """<p>{% translate "Fine" %} <code>as it is</code> Forgotten {{ name }}</p><i title="Also forgotten"></i>"""
    )
    assert shown_of_template(template) == ["Forgotten", "Also forgotten"]
    python = """Action(title="Forgotten", help_text=_("Fine"), words=f"Also {one} forgotten")
raise ActionRefused("Forgotten, too" % {})"""
    assert [text for _line, text in shown_of_python(python)] == ["Forgotten", "Also ", " forgotten", "Forgotten, too"]
    assert [text for _line, text in sentences_of('logger.error("Not read")\nreturn_this = "It is read."')] == [
        "It is read."
    ]
