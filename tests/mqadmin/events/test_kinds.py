"""Which events a reader gets."""

from __future__ import annotations

import pytest

from mqadmin.events.kinds import EventFilter

ALL = EventFilter()
OF_PROD = EventFilter(seen=frozenset(["prod"]))
ASKED_FOR = EventFilter(clusters=frozenset(["prod"]))


@pytest.mark.parametrize(
    ("wanted", "event", "gets_it"),
    [
        (ALL, ("verdict", "prod", "billing"), True),
        (ALL, ("cluster", "prod", ""), True),
        (OF_PROD, ("verdict", "prod", "billing"), True),
        (OF_PROD, ("verdict", "test", "billing"), False),
        (ASKED_FOR, ("verdict", "test", "billing"), False),
        (EventFilter(seen=frozenset(["test"]), clusters=frozenset(["prod"])), ("verdict", "prod", "billing"), False),
        (EventFilter(kinds=frozenset(["verdict"])), ("rebalance", "prod", "billing"), False),
        (EventFilter(groups=("billing",)), ("verdict", "prod", "billing"), True),
        (EventFilter(groups=("billing",)), ("verdict", "prod", "billing-2"), False),
        (EventFilter(groups=("mail-*",)), ("verdict", "prod", "mail-out"), True),
        (EventFilter(groups=("mail-*",)), ("cluster", "prod", ""), False),
        (EventFilter(groups=("a?[b]*",)), ("verdict", "prod", "a?[b]c"), True),
        (EventFilter(groups=("a?c",)), ("verdict", "prod", "abc"), False),
    ],
)
def test_reader_gets_what_it_wants_and_may_see(wanted: EventFilter, event: tuple[str, str, str], gets_it: bool) -> None:
    assert wanted.wants(*event) is gets_it
