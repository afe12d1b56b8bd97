"""What people are told: pure values, and their texts in the language of a channel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext, override

from mqadmin.alerts.conditions import WATCHED, About, Subject
from mqadmin.alerts.noticing import NoticeKind
from mqadmin.alerts.sentences import subject_words, what_words

# Of one message; the page of alerts has all. The smallest of the channels takes 4,096 bytes.
LINES_MAX = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """An alert as it is told. `url`: the thing's chart at the time when it fired."""

    id: int
    about: About
    cluster: str
    name: str
    state: str
    reading: Mapping[str, Any]
    since: datetime
    fired_at: datetime | None
    resolved_at: datetime | None
    url: str


@dataclass(frozen=True, slots=True)
class Line:
    name: str
    words: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """`title` says what happened, `lines` to what; `rest` that there are more. `document` is for programs."""

    kind: NoticeKind
    title: str
    lines: tuple[Line, ...]
    rest: str
    url: str
    url_words: str
    document: Mapping[str, Any]

    @property
    def text(self) -> str:
        """Returns the whole as plain text."""
        lines = [f"{line.name}: {line.words}\n  {line.url}" for line in self.lines]
        return "\n".join([self.title, "", *lines, *([self.rest] if self.rest else []), "", self.url_words, self.url])


def message(
    kind: NoticeKind,
    rule: str,
    cluster: str,
    alerts: Sequence[Told],
    count: int,
    *,
    language: str,
    url: str,
    key: str,
) -> Message:
    """Writes what is told of `count` alerts of one rule in one cluster, of which `alerts` are the first."""
    with override(language):
        title = _title(kind, rule, cluster, alerts, count)
        shown = alerts[:LINES_MAX]
        more = count - len(shown)
        rest = ngettext("and %(n)d more", "and %(n)d more", more) % {"n": more} if more else ""
        lines = tuple(
            Line(subject_words(one.about, one.cluster, one.name), what_words(one.about, one.reading), one.url)
            for one in shown
        )
        url_words = _("All alerts:")
    document = {
        "version": 1,
        "id": key,
        "kind": kind.value,
        "rule": rule,
        "cluster": cluster,
        "title": title,
        "url": url,
        "alert_count": count,
        "alerts": [_document(one, line) for one, line in zip(shown, lines, strict=True)],
    }
    return Message(kind=kind, title=title, lines=lines, rest=rest, url=url, url_words=url_words, document=document)


def _title(kind: NoticeKind, rule: str, cluster: str, alerts: Sequence[Told], count: int) -> str:
    values = {"rule": rule, "cluster": cluster, "n": count}
    if count == 1 and alerts:
        values["thing"] = subject_words(alerts[0].about, alerts[0].cluster, alerts[0].name)
    is_cluster = bool(alerts) and WATCHED[alerts[0].about].subject == Subject.CLUSTER
    match kind:
        case NoticeKind.TEST:
            return _("Test: this channel works")
        case NoticeKind.FIRED if is_cluster:
            return _("FIRING %(rule)s: %(cluster)s") % values
        case NoticeKind.RESOLVED if is_cluster:
            return _("RESOLVED %(rule)s: %(cluster)s") % values
        case NoticeKind.ESCALATED if is_cluster:
            return _("NOT ACKNOWLEDGED %(rule)s: %(cluster)s") % values
        case NoticeKind.FIRED if count == 1:
            return _("FIRING %(rule)s: %(thing)s in %(cluster)s") % values
        case NoticeKind.FIRED:
            return _("FIRING %(rule)s: %(n)d in %(cluster)s") % values
        case NoticeKind.RESOLVED if count == 1:
            return _("RESOLVED %(rule)s: %(thing)s in %(cluster)s") % values
        case NoticeKind.RESOLVED:
            return _("RESOLVED %(rule)s: %(n)d in %(cluster)s") % values
        case NoticeKind.ESCALATED if count == 1:
            return _("NOT ACKNOWLEDGED %(rule)s: %(thing)s in %(cluster)s") % values
        case NoticeKind.ESCALATED:
            return _("NOT ACKNOWLEDGED %(rule)s: %(n)d in %(cluster)s") % values


def _document(one: Told, line: Line) -> dict[str, Any]:
    def moment(at: datetime | None) -> str | None:
        return at.isoformat() if at is not None else None

    return {
        "id": one.id,
        "about": one.about.value,
        "cluster": one.cluster,
        "name": one.name,
        "state": one.state,
        "words": line.words,
        "reading": one.reading,
        "since": moment(one.since),
        "fired_at": moment(one.fired_at),
        "resolved_at": moment(one.resolved_at),
        "url": one.url,
    }
