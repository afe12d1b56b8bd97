"""What the query string of the pages about dead letters asks for: bounded, and garbage ignored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import MAXYEAR, UTC, datetime, time, timedelta

from django.http import HttpRequest, QueryDict
from django.utils.dateparse import parse_date

from mqadmin.clusters.models import Cluster
from mqadmin.console.listing import FILTER_CHARS_MAX
from mqadmin.deadletters.grouping import GROUPINGS, VALUE_CHARS_MAX
from mqadmin.deadletters.search_texts import SEARCHED_CHARS_MIN
from mqadmin.deadletters.selectors import DeadLetterFilter, FailureFilter
from mqadmin.people import access
from mqadmin.people.roles import Role

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class DeadLetterSearch:
    """The filters of a page. `text`, `body` and days find dead letters; without them the failures are listed.

    `role` is the viewer's: only bodies that it may see are searched. `until` is the day after the last one.
    """

    role: Role | None = None
    text: str = ""
    body: str = ""
    since: datetime | None = None
    until: datetime | None = None
    owner: str = ""
    is_archived: bool = False
    by: str = ""
    value: str | None = None
    _query: QueryDict = field(default_factory=QueryDict, repr=False)

    @property
    def finds_dead_letters(self) -> bool:
        """Tells whether something is looked for that dead letters have, and not failures."""
        return bool(self.text or self.body or self.since or self.until)

    @property
    def body_is_too_short(self) -> bool:
        """Tells whether the text that is wanted of bodies is shorter than what can be looked up."""
        return 0 < len(self.body) < SEARCHED_CHARS_MIN

    @property
    def since_day(self) -> str:
        """Returns the first day as its field has it."""
        return self.since.date().isoformat() if self.since else ""

    @property
    def until_day(self) -> str:
        """Returns the last day as its field has it."""
        return (self.until - _DAY).date().isoformat() if self.until else ""

    @property
    def audience(self) -> Sequence[str]:
        """Returns what viewers have in common who find the same: of bodies, the role."""
        return [f"role:{self.role}"] if self.body else []

    @property
    def is_filtered(self) -> bool:
        return self.finds_dead_letters or bool(self.owner) or self.is_archived or bool(self.by)

    def failures(self, group: str = "") -> FailureFilter:
        return FailureFilter(group=group, owner=self.owner, is_archived=self.is_archived)

    def dead_letters(self, failure_id: int | None = None) -> DeadLetterFilter:
        return DeadLetterFilter(
            failure_id=failure_id,
            text=self.text,
            body="" if self.body_is_too_short else self.body,
            role=self.role,
            since=self.since,
            until=self.until,
            is_archived=self.is_archived,
        )

    def selection_query(self, **further: object) -> str:
        """Returns the query string with which an action's page selects the same dead letters."""
        query = QueryDict(mutable=True)
        query.update({name: str(value) for name, value in (self._said() | further).items() if value})
        return f"?{query.urlencode()}" if query else ""

    def replay_query(self, **further: object) -> str:
        """Returns the same for a replay, which can be about those that are archived."""
        return self.selection_query(archived="yes" if self.is_archived else "", **further)

    def _said(self) -> dict[str, object]:
        return {
            "text": self.text,
            "body": "" if self.body_is_too_short else self.body,
            "since": self.since.isoformat() if self.since else "",
            "until": self.until.isoformat() if self.until else "",
        }

    def export_query(self, **further: object) -> str:
        """Returns the query string with which REST finds the same dead letters."""
        query = QueryDict(mutable=True)
        found = {
            "q": self.text,
            "body": "" if self.body_is_too_short else self.body,
            "since": self.since.isoformat() if self.since else "",
            "until": self.until.isoformat() if self.until else "",
            "archived": "true" if self.is_archived else "",
            **further,
        }
        query.update({name: str(value) for name, value in found.items() if value})
        return f"&{query.urlencode()}" if query else ""

    def of_value(self, value: str) -> str:
        """Returns the address of the failures that have this value in the field that the list is grouped by."""
        query = self._query.copy()
        query.pop("before", None)
        query["value"] = value
        return f"?{query.urlencode()}"

    def grouped_by(self, by: str) -> str:
        """Returns the address of the list grouped by a field, "" for not grouped."""
        return self._with(by=by, value="", before="")

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


def read_search(request: HttpRequest, cluster: str) -> DeadLetterSearch:
    """Reads the address, for the role that the viewer has on the cluster."""
    query = request.GET
    last = _day(query, "until")
    return DeadLetterSearch(
        role=access.role_on(request.user, Cluster.objects.filter(name=cluster).first()),
        text=_word(query, "q"),
        body=_word(query, "body"),
        since=_day(query, "since"),
        until=last + _DAY if last else None,
        owner=_word(query, "owner"),
        is_archived=query.get("archived") == "1",
        by=by if (by := query.get("by", "")) in GROUPINGS else "",
        value=query["value"][:VALUE_CHARS_MAX].replace("\0", "") if "value" in query else None,
        _query=query,
    )


def _day(query: QueryDict, name: str) -> datetime | None:
    """Returns the beginning of a day, in UTC; None for what is none, or has no day after it."""
    try:
        day = parse_date(query.get(name, ""))
    except ValueError:
        return None
    return datetime.combine(day, time.min, UTC) if day is not None and day.year < MAXYEAR else None


def _word(query: QueryDict, name: str) -> str:
    return query.get(name, "").strip()[:FILTER_CHARS_MAX].replace("\0", "")
