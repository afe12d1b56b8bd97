"""What is told, when, and together with what."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from mqadmin.alerts.noticing import GATHER_FOR, Alert, Notice, NoticeKind, notices

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
KEY = (1, 1)


def alert(number: int, **values: Any) -> Alert:
    return Alert(id=number, **{"key": KEY, "is_firing": True, **values})


def test_what_fires_of_one_rule_in_one_cluster_is_told_together() -> None:
    alerts = [alert(3), alert(1), alert(2, key=(1, 2)), alert(4, key=(2, 1))]
    assert notices(alerts, {}, NOW) == [
        Notice(NoticeKind.FIRED, KEY, (1, 3)),
        Notice(NoticeKind.FIRED, (1, 2), (2,)),
        Notice(NoticeKind.FIRED, (2, 1), (4,)),
    ]


def test_what_follows_is_gathered() -> None:
    alerts = [alert(1, told_at=NOW), alert(2)]
    assert notices(alerts, {KEY: NOW - GATHER_FOR / 2}, NOW) == []
    assert notices(alerts, {KEY: NOW - GATHER_FOR}, NOW) == [Notice(NoticeKind.FIRED, KEY, (2,))]


def test_an_end_is_told_at_once_where_nothing_fires_any_more() -> None:
    over = alert(1, is_firing=False, told_at=NOW)
    assert notices([over], {KEY: NOW}, NOW) == [Notice(NoticeKind.RESOLVED, KEY, (1,))]
    assert notices([over, alert(2, told_at=NOW)], {KEY: NOW}, NOW) == []


def test_what_was_not_told_to_fire_is_not_told_to_end() -> None:
    assert notices([alert(1, is_firing=False)], {}, NOW) == []


def test_what_is_silenced_is_told_when_the_silence_has_ended() -> None:
    assert notices([alert(1, is_silent=True)], {}, NOW) == []
    assert notices([alert(1)], {}, NOW) == [Notice(NoticeKind.FIRED, KEY, (1,))]


def test_others_are_told_once_of_what_nobody_acknowledged() -> None:
    after = timedelta(minutes=10)
    told = {"told_at": NOW - after, "escalate_after": after}
    wanted = [Notice(NoticeKind.ESCALATED, KEY, (1,), is_for_all=True)]
    assert notices([alert(1, **told)], {}, NOW) == wanted
    assert notices([alert(1, **told)], {}, NOW - timedelta(seconds=1)) == []
    for changed in ({"acknowledged_at": NOW}, {"escalated_at": NOW}, {"is_silent": True}, {"is_firing": False}):
        found = notices([alert(1, **{**told, **changed})], {}, NOW)
        assert NoticeKind.ESCALATED not in {one.kind for one in found}, changed


def test_others_who_were_told_hear_of_the_end() -> None:
    over = alert(1, is_firing=False, told_at=NOW, escalated_at=NOW)
    assert notices([over], {}, NOW) == [Notice(NoticeKind.RESOLVED, KEY, (1,), is_for_all=True)]
