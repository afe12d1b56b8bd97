"""What the query string of the pages about dead letters asks for: bounded, and garbage ignored."""

from __future__ import annotations

from dataclasses import dataclass, field

from django.http import QueryDict

from mqadmin.console.listing import FILTER_CHARS_MAX
from mqadmin.deadletters.selectors import DeadLetterFilter, FailureFilter


@dataclass(frozen=True, slots=True)
class DeadLetterSearch:
    """The filters of a page. `text` finds dead letters; without it the failures are listed."""

    text: str = ""
    owner: str = ""
    is_archived: bool = False
    _query: QueryDict = field(default_factory=QueryDict, repr=False)

    @property
    def finds_dead_letters(self) -> bool:
        """Tells whether something is looked for that dead letters have, and not failures."""
        return bool(self.text)

    @property
    def is_filtered(self) -> bool:
        return self.finds_dead_letters or bool(self.owner) or self.is_archived

    def failures(self, group: str = "") -> FailureFilter:
        return FailureFilter(group=group, owner=self.owner, is_archived=self.is_archived)

    def dead_letters(self, failure_id: int | None = None) -> DeadLetterFilter:
        return DeadLetterFilter(failure_id=failure_id, text=self.text, is_archived=self.is_archived)

    def older(self, cursor: str) -> str:
        """Returns the address of the next page; "" where there is none."""
        return self._with(before=cursor) if cursor else ""

    def switched(self) -> str:
        """Returns the address of the same list of what is archived, or of what is not."""
        return self._with(before="", archived="" if self.is_archived else "1")

    def _with(self, **changes: str) -> str:
        query = self._query.copy()
        for name, value in changes.items():
            query.pop(name, None)
            if value:
                query[name] = value
        return f"?{query.urlencode()}"


def read_search(query: QueryDict) -> DeadLetterSearch:
    return DeadLetterSearch(
        text=_word(query, "q"), owner=_word(query, "owner"), is_archived=query.get("archived") == "1", _query=query
    )


def _word(query: QueryDict, name: str) -> str:
    return query.get(name, "").strip()[:FILTER_CHARS_MAX].replace("\0", "")
