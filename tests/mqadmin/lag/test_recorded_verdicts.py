"""Verdicts of what was recorded from groups on a real Apache RocketMQ (`recorded/record.py`), look by look."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from mqadmin.clusters.models import NEEDS_ATTENTION, Verdict
from mqadmin.lag.verdicts import VerdictInput, judge

RECORDED = msgspec.json.decode(
    (Path(__file__).parent / "recorded/apache-5.4.0.json").read_bytes(), type=dict[str, list[VerdictInput]]
)
# What each is at the end, and what it may be called on the way there.
EXPECTED = {
    "keeps-up": ("keeps_up", Verdict.OK, set()),
    "stopped": ("nobody_online_waiting", Verdict.STOPPED, set()),
    "stalled-listener": ("offset_stands", Verdict.STALLED, {Verdict.OK}),
    "slow-listener": ("listener_takes_long", Verdict.BUSY, {Verdict.OK}),
    "broadcasting": ("keeps_up", Verdict.OK, {Verdict.UNKNOWN}),
}


@pytest.mark.parametrize("group", EXPECTED)
def test_what_was_recorded_is_called_by_its_name(group: str) -> None:
    rule, verdict, _ = EXPECTED[group]
    judgement = judge(RECORDED[group][-1])
    assert (judgement.rule, judgement.verdict) == (rule, verdict)


@pytest.mark.parametrize("group", EXPECTED)
def test_what_was_recorded_is_never_called_anything_else(group: str) -> None:
    _, verdict, on_the_way = EXPECTED[group]
    assert {judge(known).verdict for known in RECORDED[group]} - on_the_way == {verdict}


@pytest.mark.parametrize("group", ["keeps-up", "slow-listener", "broadcasting"])
def test_who_does_its_work_is_in_no_alarm(group: str) -> None:
    assert not {judge(known).verdict for known in RECORDED[group]} & {Verdict.STALLED, Verdict.STOPPED}
    if group == "keeps-up":
        assert not {judge(known).verdict for known in RECORDED[group]} & set(NEEDS_ATTENTION)


def test_recorded_are_all_that_are_expected() -> None:
    assert set(RECORDED) == set(EXPECTED)
