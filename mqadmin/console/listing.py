"""The query string of a list: its sort, filters and page number.

Everything a list shows can be linked: this module reads the query string, bounded and checked against what the page
offers, and writes the addresses of its neighbours (another sort, the next page). It never touches the database.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from django.http import QueryDict

# a filter is a word a person types
FILTER_CHARS_MAX = 200


@dataclass(frozen=True, slots=True)
class Listing:
    """What a query string asks for. `page` counts from 1; `choice` is the value of the page's filter, "" for none.

    `owner` is that of the rows, "" for all.
    """

    sort: str
    is_descending: bool
    text: str
    page: int
    choice_name: str
    choice: str
    owner: str = ""
    _query: QueryDict = field(default_factory=QueryDict, repr=False)

    def direction_of(self, key: str) -> str:
        """Returns the value of aria-sort: "ascending", "descending", "" when sorted by another column."""
        if self.sort != key:
            return ""
        return "descending" if self.is_descending else "ascending"

    @property
    def sort_word(self) -> str:
        """Returns the value of `sort` in the address: a leading "-" for descending."""
        return f"-{self.sort}" if self.is_descending else self.sort

    def sorted_by(self, key: str) -> str:
        """Returns the address sorted by `key`: figures start with the largest, a second click reverses the order."""
        first, second = (key, f"-{key}") if key in _SMALL_FIRST else (f"-{key}", key)
        return self._with(sort=second if self.sort_word == first else first, page=None)

    def at_page(self, page: int) -> str:
        return self._with(page=str(page) if page > 1 else None)

    def chosen(self, choice: str) -> str:
        return self._with(page=None, **{self.choice_name: choice or None})

    @property
    def is_filtered(self) -> bool:
        return bool(self.text or self.choice or self.owner)

    def without_filters(self) -> str:
        return self._with(q=None, owner=None, page=None, **{self.choice_name: None})

    def of_owner(self, owner: str) -> str:
        return self._with(owner=owner, page=None)

    def _with(self, **changes: str | None) -> str:
        query = self._query.copy()
        for name, value in changes.items():
            query.pop(name, None)
            if value is not None:
                query[name] = value
        return f"?{query.urlencode()}"


# names A to Z, verdicts worst first; every other column largest first
_SMALL_FIRST = frozenset({"name", "verdict"})


def read_listing(
    query: QueryDict, *, sorts: Collection[str], default_sort: str, choice_name: str, choices: Collection[str]
) -> Listing:
    """Reads a query string. A sort or filter that the page doesn't offer, and a page that is no number, is ignored."""
    word = query.get("sort", default_sort)
    if word.removeprefix("-") not in sorts:
        word = default_sort
    page = query.get("page", "1")
    choice = query.get(choice_name, "")
    return Listing(
        sort=word.removeprefix("-"),
        is_descending=word.startswith("-"),
        text=query.get("q", "").strip()[:FILTER_CHARS_MAX],
        page=max(1, int(page)) if page.isascii() and page.isdigit() and len(page) < 10 else 1,
        choice_name=choice_name,
        choice=choice if choice in choices else "",
        owner=query.get("owner", "").strip().replace("\0", "")[:FILTER_CHARS_MAX],
        _query=query,
    )
