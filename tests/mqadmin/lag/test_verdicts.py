from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mqadmin.clusters.models import Verdict
from mqadmin.lag.verdicts import RULES, VerdictInput, judge, reason

NOW = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def facts(**known: Any) -> VerdictInput:
    return VerdictInput(now=NOW, **known)


CASES = {
    "broadcast": (facts(is_broadcast=True, lag=5, member_count=1), Verdict.UNKNOWN, "broadcast"),
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


def test_sentence_carries_the_numbers() -> None:
    assert reason("nobody_online_waiting", {"lag": 1}) == "No member is online; 1 message waits."
    assert "from 1 to 3" in reason("lag_grows", {"lag": 3, "lag_before": 1})


def test_group_that_was_never_judged_has_no_sentence() -> None:
    assert reason("", {}) == ""


def test_what_needs_somebody_ranks_first() -> None:
    stalled = judge(facts(member_count=2, lag=3, standing_since=ago(60)))
    quiet = judge(facts(member_count=0, lag=0))
    assert stalled.rank < quiet.rank
