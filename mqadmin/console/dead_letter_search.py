"""What the query string of the pages about dead letters asks for: bounded, and garbage ignored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

# Of a number of attempts.
COUNT_DIGITS_MAX = 9
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class DeadLetterSearch:
    """The filters of a page. Owner and grouping list failures; all others find dead letters.

    `role` is the viewer's: only bodies that it may see are searched. `until` and `born_until` are the day after the
    last one.
    """

    role: Role | None = None
    text: str = ""
    body: str = ""
    since: datetime | None = None
    until: datetime | None = None
    user_property: str = ""
    attempts: int | None = None
    born_since: datetime | None = None
    born_until: datetime | None = None
    owner: str = ""
    is_archived: bool = False
    by: str = ""
    value: str | None = None
    _query: QueryDict = field(default_factory=QueryDict, repr=False)

    @property
    def finds_dead_letters(self) -> bool:
        """Tells whether something is looked for that dead letters have, and not failures."""
        return bool(self.text or self.body or self.since or self.until or self.has_further)

    @property
    def has_further(self) -> bool:
        """Tells whether one of the fields is used that the page shows when they are asked for."""
        return bool(self.user_property or self.attempts is not None or self.is_by_birth)

    @property
    def is_by_birth(self) -> bool:
        """Tells whether days of the first sending are looked for, which the list shows then."""
        return bool(self.born_since or self.born_until)

    @property
    def body_is_too_short(self) -> bool:
        """Tells whether the text that is wanted of bodies is shorter than what can be looked up."""
        return 0 < len(self.body) < SEARCHED_CHARS_MIN

    @property
    def since_day(self) -> str:
        """Returns the first day as its field has it."""
        return _first_day(self.since)

    @property
    def until_day(self) -> str:
        """Returns the last day as its field has it."""
        return _last_day(self.until)

    @property
    def born_since_day(self) -> str:
        """Returns the first day of the first sending as its field has it."""
        return _first_day(self.born_since)

    @property
    def born_until_day(self) -> str:
        """Returns the last day of the first sending as its field has it."""
        return _last_day(self.born_until)

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
            user_property=self.user_property,
            attempts=self.attempts,
            born_since=self.born_since,
            born_until=self.born_until,
            is_archived=self.is_archived,
        )

    def selection_query(self, **further: object) -> str:
        """Returns the query string with which an action's page selects the same dead letters."""
        query = _query({"text": self.text, **self._said(), **further})
        return f"?{query}" if query else ""

    def replay_query(self, **further: object) -> str:
        """Returns the same for a replay, which can be about those that are archived."""
        return self.selection_query(archived="yes" if self.is_archived else "", **further)

    def _said(self) -> dict[str, object]:
        """Returns what actions and REST have by the same names."""
        moments = {name: getattr(self, name) for name in ("since", "until", "born_since", "born_until")}
        return {
            "body": "" if self.body_is_too_short else self.body,
            "user_property": self.user_property,
            "attempts": "" if self.attempts is None else str(self.attempts),
            **{name: moment.isoformat() for name, moment in moments.items() if moment},
        }

    def export_query(self, **further: object) -> str:
        """Returns the query string with which REST finds the same dead letters."""
        query = _query({"q": self.text, **self._said(), "archived": "true" if self.is_archived else "", **further})
        return f"&{query}" if query else ""

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
    last, last_born = _day(query, "until"), _day(query, "born_until")
    return DeadLetterSearch(
        role=access.role_on(request.user, Cluster.objects.filter(name=cluster).first()),
        text=_word(query, "q"),
        body=_word(query, "body"),
        since=_day(query, "since"),
        until=last + _DAY if last else None,
        user_property=_word(query, "user_property"),
        attempts=_count(query, "attempts"),
        born_since=_day(query, "born_since"),
        born_until=last_born + _DAY if last_born else None,
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


def _first_day(since: datetime | None) -> str:
    return since.date().isoformat() if since else ""


def _last_day(until: datetime | None) -> str:
    return (until - _DAY).date().isoformat() if until else ""


def _query(said: Mapping[str, object]) -> str:
    query = QueryDict(mutable=True)
    query.update({name: str(value) for name, value in said.items() if value})
    return query.urlencode()


def _count(query: QueryDict, name: str) -> int | None:
    """Returns a number that a field of the database can have; None for what is none."""
    text = query.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= COUNT_DIGITS_MAX else None


def _word(query: QueryDict, name: str) -> str:
    return query.get(name, "").strip()[:FILTER_CHARS_MAX].replace("\0", "")
