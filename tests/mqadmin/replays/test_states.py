from __future__ import annotations

from itertools import product

import pytest

from mqadmin.replays.states import (
    ENDED,
    NEXT_ENTRY_STATES,
    EntryState,
    JobState,
    Verb,
    is_too_bad,
    next_state,
)


def test_what_has_ended_never_changes_again() -> None:
    assert {next_state(verb, state) for verb, state in product(Verb, ENDED)} == {None}


def test_every_replay_that_has_not_ended_can_be_cancelled() -> None:
    assert {next_state(Verb.CANCEL, state) for state in JobState if state not in ENDED} == {JobState.CANCELLED}


def test_an_entry_is_sent_only_after_it_was_written_to_be_sent() -> None:
    assert {before for before, after in NEXT_ENTRY_STATES.items() if EntryState.SENT in after} == {EntryState.SENDING}


def test_an_outcome_is_final() -> None:
    final = (EntryState.SENT, EntryState.SKIPPED, EntryState.REFUSED, EntryState.UNKNOWN)
    assert {NEXT_ENTRY_STATES[state] for state in final} == {frozenset()}


@pytest.mark.parametrize(
    ("sent", "dead", "percent", "expected"),
    [(100, 5, 5, False), (100, 6, 5, True), (19, 19, 5, False), (20, 2, 5, True), (100, 100, 0, False)],
    ids=["just the share", "one more", "too few to judge", "few, enough", "never"],
)
def test_a_replay_stops_above_its_share(sent: int, dead: int, percent: int, expected: bool) -> None:
    assert is_too_bad(sent, dead, stop_percent=percent, judged_from=20) is expected
