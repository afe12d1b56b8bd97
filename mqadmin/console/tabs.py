"""Tabs: pages about the same thing, each with an address of its own."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tab:
    """A link to one of them; `note` stands behind its word, such as a count."""

    name: str
    url: str
    word: str
    note: str = ""
