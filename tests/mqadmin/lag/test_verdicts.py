from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqadmin.clusters.models import NEEDS_ATTENTION, Verdict
from mqadmin.lag.failing import Failing
from mqadmin.lag.in_flight import InFlight
from mqadmin.lag.verdicts import RULES, SETTLE_S, STALLED_AFTER_S, VerdictInput, judge, reason, settled

NOW = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def facts(**known: Any) -> VerdictInput:
    return VerdictInput(now=NOW, **known)


FLYING = InFlight(stood_s=200, timeout_s=900, message_count=3, queue_count=2, until=ago(-100))

CASES = {
    "broadcast": (facts(is_broadcast=True, member_count=1), Verdict.UNKNOWN, "broadcast"),
    "broadcast, and a member said that it is behind": (
        facts(is_broadcast=True, lag=200, lag_before=100, behind_since=ago(70), member_count=2),
        Verdict.SLOW,
        "lag_grows",
    ),
    "nothing known": (facts(), Verdict.UNKNOWN, "no_offsets"),
    "nobody online, messages wait": (facts(member_count=0, lag=3), Verdict.STOPPED, "nobody_online_waiting"),
    "nobody online, nothing waits": (facts(member_count=0, lag=0), Verdict.QUIET, "nobody_online"),
    "messages wait, members not known": (facts(lag=3), Verdict.UNKNOWN, "members_not_known"),
    "nothing waits, members not known": (facts(lag=0, moved_at=ago(1)), Verdict.OK, "keeps_up"),
    "offset stands for a minute": (
        facts(member_count=2, lag=3, standing_since=ago(60), behind_since=ago(90)),
        Verdict.STALLED,
        "offset_stands",
    ),
    "offset stands not long enough": (
        facts(member_count=2, lag=3, standing_since=ago(59), behind_since=ago(59)),
        Verdict.OK,
        "keeps_up",
    ),
    "a broker with some of its queues is away": (
        facts(member_count=2, lag=200, lag_before=100, behind_since=ago(70), is_any_broker_away=True),
        Verdict.UNKNOWN,
        "broker_away",
    ),
    "offset stands on a broker that answers, another is away": (
        facts(member_count=2, lag=3, standing_since=ago(60), behind_since=ago(90), is_any_broker_away=True),
        Verdict.STALLED,
        "offset_stands",
    ),
    "no member pulls the queue": (
        facts(member_count=2, lag=3, standing_since=ago(60), behind_since=ago(60), is_pulled=False),
        Verdict.STOPPED,
        "nobody_pulls",
    ),
    "no member pulls the queue for a moment": (
        facts(member_count=2, lag=3, standing_since=ago(20), behind_since=ago(20), is_pulled=False),
        Verdict.OK,
        "keeps_up",
    ),
    "its listener takes long": (
        facts(member_count=2, lag=3, standing_since=ago(200), behind_since=ago(200), in_flight=FLYING),
        Verdict.BUSY,
        "listener_takes_long",
    ),
    "its listener takes long, and its lag grows over its objective": (
        facts(member_count=2, lag=99, lag_before=1, standing_since=ago(200), behind_since=ago(200), in_flight=FLYING),
        Verdict.SLOW,
        "lag_grows",
    ),
    "messages die": (
        facts(member_count=2, lag=0, moved_at=ago(1), failing=Failing(died=1)),
        Verdict.FAILING,
        "messages_die",
    ),
    "messages die, and its lag grows over its objective": (
        facts(member_count=2, lag=200, lag_before=100, behind_since=ago(70), failing=Failing(died=3)),
        Verdict.FAILING,
        "messages_die",
    ),
    "messages die, and its offset stands": (
        facts(member_count=2, lag=3, standing_since=ago(60), failing=Failing(died=3)),
        Verdict.STALLED,
        "offset_stands",
    ),
    "messages died, and its last member left": (
        facts(member_count=0, lag=0, failing=Failing(died=3)),
        Verdict.FAILING,
        "messages_die",
    ),
    "retries keep coming": (
        facts(member_count=2, lag=1, failing=Failing(retried=10, retried_late=5, consumed=100)),
        Verdict.FAILING,
        "retries_pile_up",
    ),
    "retries are few of what is consumed": (
        facts(member_count=2, lag=1, failing=Failing(retried=10, retried_late=5, consumed=101)),
        Verdict.OK,
        "keeps_up",
    ),
    "retries came in one burst": (
        facts(member_count=2, lag=1, failing=Failing(retried=300, retried_late=300, consumed=10)),
        Verdict.OK,
        "keeps_up",
    ),
    "a burst of retries is long ago": (
        facts(member_count=2, lag=1, failing=Failing(retried=300, retried_late=4, consumed=10)),
        Verdict.OK,
        "keeps_up",
    ),
    "retries fell to half of that": (
        facts(was=Verdict.FAILING, member_count=2, lag=1, failing=Failing(retried=10, consumed=200)),
        Verdict.FAILING,
        "retries_pile_up",
    ),
    "retries fell below half of that": (
        facts(was=Verdict.FAILING, member_count=2, lag=0, moved_at=ago(1), failing=Failing(retried=10, consumed=201)),
        Verdict.OK,
        "keeps_up",
    ),
    "moved back": (
        facts(member_count=2, lag=200, lag_before=1, behind_since=ago(900), rewound_count=199),
        Verdict.REWOUND,
        "rewound",
    ),
    "lag grows, and more is allowed": (
        facts(member_count=2, lag=200, lag_before=100, behind_since=ago(70), allowed_lag_s=300),
        Verdict.OK,
        "keeps_up",
    ),
    "lag grows over the number that is allowed": (
        facts(member_count=2, lag=200, lag_before=100, behind_since=ago(5), allowed_lag=150),
        Verdict.SLOW,
        "lag_grows",
    ),
    "was slow and still has more than before": (
        facts(member_count=2, lag=105, lag_before=100, behind_since=ago(70), was=Verdict.SLOW),
        Verdict.SLOW,
        "lag_grows",
    ),
    "lag grows": (
        facts(member_count=2, lag=200, lag_before=100, behind_since=ago(70), standing_since=ago(1)),
        Verdict.SLOW,
        "lag_grows",
    ),
    "lag grows by too little to say so": (
        facts(member_count=2, lag=109, lag_before=100, behind_since=ago(70)),
        Verdict.OK,
        "catching_up",
    ),
    "lag grows by few messages": (
        facts(member_count=2, lag=8, lag_before=1, behind_since=ago(70)),
        Verdict.OK,
        "catching_up",
    ),
    "lag before is not known": (facts(member_count=2, lag=200, behind_since=ago(70)), Verdict.OK, "catching_up"),
    "a burst that just came": (
        facts(member_count=2, lag=5000, lag_before=0, behind_since=ago(2)),
        Verdict.OK,
        "keeps_up",
    ),
    "at rest": (facts(member_count=2, lag=0, moved_at=ago(601)), Verdict.QUIET, "no_traffic"),
    "never seen to move": (facts(member_count=2, lag=0), Verdict.QUIET, "no_traffic"),
    "keeps up": (facts(member_count=2, lag=4, moved_at=ago(1)), Verdict.OK, "keeps_up"),
}


@pytest.mark.parametrize(("known", "verdict", "rule"), CASES.values(), ids=CASES.keys())
def test_first_rule_that_holds_says_the_verdict(known: VerdictInput, verdict: Verdict, rule: str) -> None:
    judgement = judge(known)
    assert (judgement.verdict, judgement.rule) == (verdict, rule)


def test_every_rule_has_a_case_and_a_sentence() -> None:
    assert {rule for _, _, rule in CASES.values()} == {rule.name for rule in RULES}
    for rule in RULES:
        assert reason(rule.name, {"members": 2, "lag": 3, "lag_before": 1}).endswith(".")


LAGS = st.integers(1, 10**9)
SECONDS = st.floats(0, 10**5)


@given(
    was=st.none() | st.sampled_from(Verdict),
    calm_s=st.none() | SECONDS,
    members=st.integers(1, 100),
    lag_before=st.none() | st.integers(0, 10**9),
    moved_s=st.none() | SECONDS,
    allowed_lag_s=st.integers(1, 10**5),
)
def test_group_that_keeps_up_is_never_in_alarm(
    was: Verdict | None,
    calm_s: float | None,
    members: int,
    lag_before: int | None,
    moved_s: float | None,
    allowed_lag_s: int,
) -> None:
    known = facts(
        was=was,
        member_count=members,
        lag=0,
        lag_before=lag_before,
        moved_at=None if moved_s is None else ago(moved_s),
        allowed_lag_s=allowed_lag_s,
    )
    found, _ = settled(known, judge(known), None if calm_s is None else ago(calm_s))
    assert found.verdict not in NEEDS_ATTENTION


@given(
    was=st.none() | st.sampled_from(Verdict),
    members=st.integers(1, 100),
    lag=LAGS,
    stood_s=st.floats(STALLED_AFTER_S, 10**5),
    rewound=st.integers(0, 100),
    allowed_lag_s=st.integers(1, 10**5),
)
def test_group_whose_offsets_stand_with_messages_waiting_is_always_stalled(
    was: Verdict | None, members: int, lag: int, stood_s: float, rewound: int, allowed_lag_s: int
) -> None:
    known = facts(
        was=was,
        member_count=members,
        lag=lag,
        standing_since=ago(stood_s),
        behind_since=ago(stood_s),
        rewound_count=rewound,
        allowed_lag_s=allowed_lag_s,
    )
    assert settled(known, judge(known), None)[0].verdict == Verdict.STALLED


def test_stalled_group_is_called_better_when_that_has_held() -> None:
    known = facts(was=Verdict.STALLED, member_count=2, lag=3, behind_since=ago(5), moved_at=ago(1))
    first, since = settled(known, judge(known), None)
    assert (first.verdict, first.rule, since) == (Verdict.STALLED, "settling", NOW)
    assert settled(known, judge(known), ago(SETTLE_S - 1))[0].verdict == Verdict.STALLED
    assert settled(known, judge(known), ago(SETTLE_S)) == (judge(known), None)


def test_group_that_moves_once_in_a_while_does_not_flap() -> None:
    """One message takes 65 s, and messages always wait: STALLED once, and that for good."""
    was, calm_since, changes = Verdict.OK, None, 0
    for second in range(0, 1300, 5):
        stands_s = second % 65
        known = VerdictInput(
            now=ago(-second),
            was=was,
            member_count=1,
            lag=9,
            behind_since=ago(stands_s - second),
            standing_since=ago(stands_s - second),
        )
        found, calm_since = settled(known, judge(known), calm_since)
        changes += found.verdict != was
        was = found.verdict
    assert (was, changes) == (Verdict.STALLED, 1)


def test_group_whose_listener_takes_long_is_busy_and_does_not_flap() -> None:
    """One message takes 200 s, and messages always wait: BUSY once, and that for good."""
    was, calm_since, words = Verdict.OK, None, []
    for second in range(0, 2000, 5):
        stands_s = second % 200
        known = VerdictInput(
            now=ago(-second),
            was=was,
            member_count=1,
            lag=9,
            lag_before=9,
            behind_since=ago(stands_s - second),
            standing_since=ago(stands_s - second),
            in_flight=FLYING if stands_s >= STALLED_AFTER_S else None,
        )
        found, calm_since = settled(known, judge(known), calm_since)
        words += [found.verdict] if found.verdict != was else []
        was = found.verdict
    assert words == [Verdict.BUSY]


def test_group_that_was_stalled_is_busy_as_soon_as_its_members_say_so() -> None:
    known = facts(was=Verdict.STALLED, member_count=1, lag=3, standing_since=ago(90), in_flight=FLYING)
    assert settled(known, judge(known), None)[0].verdict == Verdict.BUSY


def test_busy_group_whose_members_say_no_more_is_stalled_at_once() -> None:
    known = facts(was=Verdict.BUSY, member_count=1, lag=3, standing_since=ago(900))
    assert settled(known, judge(known), None)[0].verdict == Verdict.STALLED


def test_sentence_carries_the_numbers() -> None:
    assert reason("nobody_online_waiting", {"lag": 1}) == "No member is online; 1 message waits."
    assert "3 messages are in flight" in reason(
        "listener_takes_long", judge(CASES["its listener takes long"][0]).numbers
    )
    assert "from 1 to 3" in reason("lag_grows", {"lag": 3, "lag_before": 1})


def test_sentences_of_failing_groups_carry_their_numbers() -> None:
    died = judge(facts(lag=0, member_count=1, failing=Failing(died=1)))
    assert reason(died.rule, died.numbers) == "1 of its messages became a dead letter in the last 10 minutes."
    retried = judge(facts(lag=0, member_count=1, failing=Failing(retried=1200, retried_late=600, consumed=9)))
    assert "1,200 retries in the last 10 minutes, 9 consumed" in reason(retried.rule, retried.numbers)


def test_failing_group_does_not_flap_while_retries_swing() -> None:
    """Retries come a little above the limit, and a little below, every minute: FAILING once, and that for good."""
    was, calm_since, words = Verdict.OK, None, []
    for minute in range(60):
        consumed = 90 if minute % 2 else 110
        failing = Failing(retried=10, retried_late=5, consumed=consumed)
        known = VerdictInput(
            now=ago(-60 * minute), was=was, member_count=1, lag=0, moved_at=ago(-60 * minute), failing=failing
        )
        found, calm_since = settled(known, judge(known), calm_since)
        words += [found.verdict] if found.verdict != was else []
        was = found.verdict
    assert words == [Verdict.FAILING]


def test_group_that_was_never_judged_has_no_sentence() -> None:
    assert reason("", {}) == ""


def test_what_needs_somebody_ranks_first() -> None:
    stalled = judge(facts(member_count=2, lag=3, standing_since=ago(60)))
    quiet = judge(facts(member_count=0, lag=0))
    assert stalled.rank < quiet.rank
