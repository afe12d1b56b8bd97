"""What a dry run says: each warning where its cause is there, and only there."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from mqadmin.replays.choosing import Chosen, OriginTag
from mqadmin.replays.dry_run import DryRun
from mqadmin.replays.dry_run_warnings import WARNINGS, warnings_of
from mqadmin.replays.filtered import Filtered, Unmatched
from mqadmin.replays.states import Target

NOTHING = DryRun(
    selection={},
    until_id=1,
    target=Target.GROUP,
    chosen=Chosen(count=3, origins=("orders",), sample=(), replayed_count=0, large_count=0, homeless_count=0),
    topics=("%RETRY%billing",),
    member_count=2,
)
CAUSES: dict[str, dict[str, Any]] = {
    "uncounted": {"has_more": True},
    "estimated": {"estimate": 9},
    "closed": {"closed": ("orders", "refunds")},
    "wrong_lines": {"wrong_count": 1},
    "changed_lines": {"changed_count": 2},
    "other_groups_lines": {"others_count": 3},
    "homeless": {"homeless_count": 1},
    "replayed": {"replayed_count": 2},
    "every_group": {"target": Target.ORIGIN},
    "nobody_online": {"member_count": 0},
    "maybe_ordered": {"is_ordered": None},
    "unsubscribed": {"unsubscribed": ("orders",)},
    "gone": {"gone": ("orders",)},
    "unwanted_by_group": {"filtered": Filtered(unwanted=(OriginTag("orders", "paid"),))},
    "unmatched_by_group": {"filtered": Filtered(unmatched=(Unmatched("orders", 2, 12),))},
    "unclear": {"filtered": Filtered(unclear=("orders",))},
    "large": {"large_count": 1},
    "silent": {"silent": ("10.0.0.1:10911 does not answer.",)},
}


def found(**cause: Any) -> DryRun:
    of_chosen = {field.name for field in fields(Chosen)}
    chosen = replace(NOTHING.chosen, **{name: value for name, value in cause.items() if name in of_chosen})
    return replace(NOTHING, chosen=chosen, **{name: value for name, value in cause.items() if name not in of_chosen})


def codes(run: DryRun) -> list[str]:
    return [one.code for one in WARNINGS if one.said_of(run)]


def test_nothing_is_said_where_nothing_is_to_be_known() -> None:
    assert warnings_of(NOTHING) == []


@pytest.mark.parametrize("code", CAUSES)
def test_each_warning_has_one_cause_and_is_filled_in(code: str) -> None:
    run = found(**CAUSES[code])
    assert codes(run) == [code]
    (words,) = warnings_of(run)
    assert "%" not in words


def test_each_warning_but_two_has_its_cause_here() -> None:
    assert {one.code for one in WARNINGS} - set(CAUSES) == {"unwanted", "unmatched"}


def test_what_goes_to_the_topic_is_filtered_and_said_to_be() -> None:
    tags = tuple(OriginTag("orders", f"t{number}") for number in range(11))
    run = replace(NOTHING, target=Target.ORIGIN, filtered=Filtered(unwanted=tags))
    assert codes(run) == ["every_group", "unwanted"]
    words = warnings_of(run)[1]
    assert "t0 (orders), t1 (orders)" in words
    assert words.endswith("t9 (orders) ….")
    run = replace(run, filtered=Filtered(unmatched=(Unmatched("orders", 2, 12), Unmatched("refunds", 1, 1))))
    assert codes(run) == ["every_group", "unmatched"]
    assert "does not get these: orders (2 of 12 that were looked at), refunds (1 of 1" in warnings_of(run)[1]


def test_they_are_said_in_the_order_of_the_table_and_readers_at_the_end() -> None:
    run = replace(found(member_count=0, replayed_count=2, wrong_count=1), readers=("orders is read by mailing.",))
    assert codes(run) == ["wrong_lines", "replayed", "nobody_online"]
    assert warnings_of(run)[1] == "Replays have sent 2 of them already."
    assert warnings_of(run)[-1] == "orders is read by mailing."


def test_a_message_without_a_topic_is_no_problem_where_another_topic_is_chosen() -> None:
    assert codes(replace(found(homeless_count=1), target=Target.TOPIC)) == []


def test_members_that_are_not_known_are_not_said_to_be_offline() -> None:
    assert codes(found(member_count=None)) == []
