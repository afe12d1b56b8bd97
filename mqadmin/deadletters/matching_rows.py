"""Dead letters that hold a text, the last indexed first: looked up by words and trigrams, judged by the other filters.

Where the other filters let few through, those few are read and compared, whatever the text. Else the text is looked up,
and what is found is judged, the newest first, a bounded number for one page: of a text that very many have, and of
which the other filters let hardly one through, a page may end before it is full, and says where to go on.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from mqadmin.clusters.bulk import chunks
from mqadmin.clusters.selectors.newest_rows import PAGE_SIZE, Looked, NewestRows, Page
from mqadmin.deadletters.models import DeadLetter, SearchText
from mqadmin.deadletters.search_index import LookUp, matching_ids

# Looked up together, at first: of a text that many have, a page needs the first ones alone. Each further time there
# are FURTHER as many, since the other filters let few through.
LOOKED_UP_AT_FIRST = 100
FURTHER = 4
LOOKED_UP_AT_ONCE = 1000
# Judged for one page: some tenths of a second. The next page goes on behind them.
JUDGED_MAX = 1000
# So many are compared one by one, with texts of 8,192 characters at most.
FEW = 1000
CURSOR_DIGITS_MAX = 18


@dataclass(frozen=True, slots=True)
class MatchingRows:
    """The rows of a query that have what is looked up. A position is [primary key].

    `indexed`: rows that an index of their own has in their order, with all of `rows` among them.
    """

    rows: QuerySet[DeadLetter]
    indexed: NewestRows[DeadLetter]
    wanted: LookUp

    def after(self, position: Sequence[Any] | None, size: int) -> list[DeadLetter]:
        """Returns at most `size` rows behind the position, None for the first ones; fewer only at the end."""
        found: list[DeadLetter] = []
        while True:
            looked = self.look(position, size - len(found))
            found += looked.rows
            if looked.place is None or len(found) >= size:
                return found
            position = looked.place

    def look(self, position: Sequence[Any] | None, size: int) -> Looked[DeadLetter]:
        """Returns at most `size` rows behind the position, of JUDGED_MAX that have the text, and where to go on."""
        if not self.wanted.words and not self.wanted.body:
            return Looked([], None)
        below = None if position is None else int(position[0])
        few = self._few()
        return self._look_up(below, size) if few is None else self._compare(few, below, size)

    def _few(self) -> list[int] | None:
        """Returns what the other filters let through, the newest first; None where that is more than FEW."""
        # In the order of the index, which says at once where there are no more.
        ids = list(self.indexed.in_order().values_list("pk", flat=True)[: FEW + 1])
        return sorted(ids, reverse=True) if len(ids) <= FEW else None

    def _compare(self, few: Sequence[int], below: int | None, size: int) -> Looked[DeadLetter]:
        found: list[DeadLetter] = []
        for ids in chunks(pk for pk in few if below is None or pk < below):
            found += self._of(self._matching(ids), size - len(found))
            if len(found) >= size:
                return Looked(found, [found[-1].pk])
        return Looked(found, None)

    def _look_up(self, below: int | None, size: int) -> Looked[DeadLetter]:
        found: list[DeadLetter] = []
        judged, count = 0, min(LOOKED_UP_AT_ONCE, max(LOOKED_UP_AT_FIRST, size))
        while judged < JUDGED_MAX:
            ids = matching_ids(self.wanted, below, count)
            found += self._of(self._matching(ids) if self.wanted.body else ids, size - len(found))
            if len(found) >= size:
                return Looked(found, [found[-1].pk])
            if len(ids) < count:
                return Looked(found, None)
            judged += count
            below, count = ids[-1], min(LOOKED_UP_AT_ONCE, count * FURTHER)
        return Looked(found, [below])

    def _of(self, ids: Collection[int], size: int) -> list[DeadLetter]:
        """Returns those of them that the other filters let through."""
        return list(self.rows.filter(pk__in=ids).order_by("-pk")[:size]) if ids else []

    def _matching(self, ids: Sequence[int]) -> list[int]:
        """Returns those of them that have the texts indeed."""
        texts = SearchText.objects.filter(pk__in=ids).values_list("pk", "words", "body")
        return [row_id for row_id, words, body in texts if self._matches(words, body)]

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
        looked = self.look([int(before)] if is_cursor else None, size + 1)
        rows = tuple(looked.rows[:size])
        if len(looked.rows) > size:
            return Page(rows, str(rows[-1].pk))
        return Page(rows, "" if looked.place is None else str(looked.place[0]), is_cut=looked.place is not None)
