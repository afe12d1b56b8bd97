"""Dead letters that hold a text, the last indexed first: looked up by trigrams, then judged by the other filters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from mqadmin.clusters.selectors.newest_rows import PAGE_SIZE, Page
from mqadmin.deadletters.models import DeadLetter, SearchText
from mqadmin.deadletters.search_index import LookUp, matching_ids

# Looked up together, at first: of a text that many have, a page needs the first ones alone. Each further time there
# are FURTHER as many, since the other filters let few through; they are read until they end.
LOOKED_UP_AT_FIRST = 100
FURTHER = 4
LOOKED_UP_AT_ONCE = 1000
CURSOR_DIGITS_MAX = 18


@dataclass(frozen=True, slots=True)
class MatchingRows:
    """The rows of a query that have what is looked up. A position is [primary key]."""

    rows: QuerySet[DeadLetter]
    wanted: LookUp

    def after(self, position: Sequence[Any] | None, size: int) -> list[DeadLetter]:
        """Returns at most `size` rows behind the position, None for the first ones."""
        below = None if position is None else int(position[0])
        found: list[DeadLetter] = []
        count = min(LOOKED_UP_AT_ONCE, max(LOOKED_UP_AT_FIRST, size))
        while len(found) < size:
            ids = matching_ids(self.wanted, below, count)
            found += self._judged(ids, size - len(found))
            if len(ids) < count:
                break
            below, count = ids[-1], min(LOOKED_UP_AT_ONCE, count * FURTHER)
        return found

    def _judged(self, ids: list[int], size: int) -> list[DeadLetter]:
        """Returns those that match indeed, and that the other filters let through."""
        if self.wanted.body and ids:
            texts = SearchText.objects.filter(pk__in=ids).values_list("pk", "words", "body")
            ids = [row_id for row_id, words, body in texts if self._matches(words, body)]
        return list(self.rows.filter(pk__in=ids).order_by("-pk")[:size]) if ids else []

    def _matches(self, words: str, body: str) -> bool:
        has_words = all(f" {word} " in words for word in self.wanted.words)
        return has_words and self.wanted.body.lower() in body.lower()

    def position(self, row: DeadLetter) -> list[object]:
        """Returns the position of a row, as plain JSON."""
        return [row.pk]

    def total_count(self) -> None:
        """Not counted: there may be millions."""

    def page(self, before: str, size: int = PAGE_SIZE) -> Page[DeadLetter]:
        """Returns the rows before a cursor; the first ones where it is "" or garbage."""
        is_cursor = before.isascii() and before.isdigit() and len(before) <= CURSOR_DIGITS_MAX
        found = self.after([int(before)] if is_cursor else None, size + 1)
        rows = tuple(found[:size])
        return Page(rows, str(rows[-1].pk) if len(found) > size else "")
