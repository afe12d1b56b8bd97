"""What the docs promise is there, and what is there is in the docs."""

from __future__ import annotations

import re
from pathlib import Path

from django.core.management import get_commands

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ARCHITECTURE = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
# Set by our own processes for each other, not by people.
INTERNAL = {"MQADMIN_DATABASE_POOL", "MQADMIN_LOG_LINES"}


def variables_read() -> set[str]:
    sources = [path for room in ("mqadmin", "broker", "consumer") for path in (ROOT / room).rglob("*.py")]
    pattern = re.compile(r"""environ(?:\.get\(|\[|\.setdefault\()\s*["'](MQADMIN_\w+|DATABASE_URL|REDIS_URL)["']""")
    return {name for path in sources for name in pattern.findall(path.read_text(encoding="utf-8"))} - INTERNAL


def test_every_variable_that_is_read_is_in_the_readme_and_none_else() -> None:
    documented = set(re.findall(r"^\| `(\w+)` \|", README, re.MULTILINE))
    assert documented == variables_read()


def test_every_command_of_the_readme_exists() -> None:
    named = set(re.findall(r"`manage\.py (\w+)", README + ARCHITECTURE))
    assert named
    assert named <= set(get_commands())


def test_every_make_word_of_the_readme_exists() -> None:
    words = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"`?make (run|test|check|bench|\w+)`", README)) <= words


def test_every_path_that_the_docs_name_exists() -> None:
    paths = set(re.findall(r"`((?:remoting|broker|consumer|mqadmin|tests|examples|docs)/[\w./-]*)`", ARCHITECTURE))
    assert paths
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []
    links = re.findall(r"\]\(([^)#:]+)\)", README + ARCHITECTURE)
    assert [link for link in links if not (ROOT / link).exists()] == []
