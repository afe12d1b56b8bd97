"""Reads pages as a person does."""

from __future__ import annotations

import html
import re
from typing import Any


def text_of(response: Any) -> str:
    """Returns the words of a page, with single blanks between them."""
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode())))


def names_in(response: Any) -> list[str]:
    """Returns the names of the rows of its tables."""
    return [html.unescape(name) for name in re.findall(r'<tr data-row="([^"]*)"', response.content.decode())]
