"""How far a run is: a percent that only grows, from the hours that are appended to the last of Spark's stages."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqadmin.reports.progress import PERCENT_MAX, STAGES_USUAL, OpenStage, Progress, Stages, share_done


@pytest.mark.parametrize(
    ("stages", "planned", "expected", "share"),
    [
        ([], 0, 4, 0.0),
        ([OpenStage(1, 4)], 2, 4, 1.25 / 4),
        ([OpenStage(0, 4), OpenStage(0, 0)], 3, 3, 1 / 3),
        ([], 8, 4, 1.0),
        ([OpenStage(5, 4), OpenStage(0, 4)], 8, 4, 7 / 8),
        ([], 0, 0, 0.0),
        ([OpenStage(0, 4)], 0, 4, 0.0),
    ],
    ids=[
        *("none yet", "tasks count", "planned ones wait", "more than expected", "a task twice", "nothing expected"),
        "one of the report before",
    ],
)
def test_the_share_of_a_report_is_that_of_its_stages(
    stages: Sequence[OpenStage], planned: int, expected: int, share: float
) -> None:
    assert share_done(stages, planned, expected) == pytest.approx(share)


def test_a_run_appends_hours_first_then_starts_spark_then_goes_by_stages() -> None:
    progress, half = Progress(), STAGES_USUAL // 2
    seen = [Stages(0)]
    told = [progress.percent()]
    for number, share in ((0, 0.5), (0, 1.0), (1, 1.0)):
        progress.note_appended(number, 2, share)
        told.append(progress.percent())
    progress.begin_reports(2)
    told.append(progress.percent())
    progress.begin_computing(lambda: seen[-1])
    told.append(progress.percent())
    seen.append(Stages(half))
    told.append(progress.percent())
    progress.end_report()
    told.append(progress.percent())
    # The second is held against the first, which had half as many as usual.
    seen.append(Stages(half + half // 2))
    told.append(progress.percent())
    progress.end_report()
    progress.end_computing()
    told.append(progress.percent())
    assert told == [0, 2, 5, 10, 10, 15, 36, 57, 78, 99]


OPEN = st.builds(OpenStage, st.integers(0, 9), st.integers(0, 9))
SEEN = st.builds(Stages, st.integers(0, 3 * STAGES_USUAL), st.lists(OPEN, max_size=5))


@given(st.lists(st.tuples(SEEN, st.booleans()), max_size=12), st.integers(1, 4))
def test_whatever_spark_says_the_percent_never_goes_down(looks: list[tuple[Stages, bool]], count: int) -> None:
    progress, seen, told = Progress(), [Stages(0)], [0]
    progress.begin_reports(count)
    progress.begin_computing(lambda: seen[-1])
    for stages, is_end in looks:
        seen.append(stages)
        if is_end:
            progress.end_report()
        told.append(progress.percent())
    assert told == sorted(told)
    assert told[-1] <= PERCENT_MAX
