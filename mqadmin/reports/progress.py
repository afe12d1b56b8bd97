"""How far a run is, as a percent that only grows: hours are appended to the history, Spark starts, reports are made.

A report is as far as the share of its Spark stages that are done. Spark plans stages as it goes: how many there will be
is taken from the report before, of a run's first one from STAGES_USUAL; where there are more, the percent waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

# The percent when all hours are appended, when Spark is up, and at most before the run has ended.
APPENDED_PERCENT = 10
STARTED_PERCENT = 15
PERCENT_MAX = 99
# Of a report without days before it: those that Spark skips, as their result is there, are counted too.
STAGES_USUAL = 32


class OpenStage(NamedTuple):
    """One of Spark's stages that is at work or waits."""

    tasks_done: int
    tasks: int

    @property
    def share(self) -> float:
        return min(1.0, self.tasks_done / self.tasks) if self.tasks else 0.0


class Stages(NamedTuple):
    """How many stages Spark has planned since it was started, and those of them that are open; the others are done."""

    planned: int
    open: Sequence[OpenStage] = ()


def share_done(stages: Sequence[OpenStage], planned: int, expected: int) -> float:
    """Returns the share of a report that is done: of `planned` stages these are open; about `expected` there will be.

    >>> share_done([OpenStage(1, 2)], planned=2, expected=3)
    0.5
    """
    done = planned - sum(1 - stage.share for stage in stages)
    return max(0.0, done / max(planned, expected, 1))


class _Report(NamedTuple):
    """Which report of the run is being made, how many stages were before it, and about how many it has itself."""

    number: int = 0
    stages_before: int = 0
    expected: int = STAGES_USUAL


@dataclass(slots=True)
class Progress:
    """Written by the run, read by the thread that tells it.

    `look` returns how far Spark is with its stages; None: Spark is not there.
    """

    stage: str = "appending"
    appended: float = 0.0
    report_count: int = 1
    look: Callable[[], Stages] | None = None
    # Replaced whole, since the other thread reads it meanwhile.
    _report: _Report = field(default_factory=_Report)
    _told: int = 0

    def note_appended(self, number: int, count: int, share: float) -> None:
        """Says which share of its hours one of `count` clusters has in the history, those before it all."""
        self.appended = (number + share) / count

    def begin_reports(self, count: int) -> None:
        """Says that the history is there, and Spark is being started."""
        self.stage, self.appended, self.report_count = "starting", 1.0, count

    def begin_computing(self, look: Callable[[], Stages]) -> None:
        self.look, self.stage = look, "computing"

    def end_report(self) -> None:
        """Says that a report is made, or has failed: the next one has about as many stages."""
        assert self.look is not None
        planned, before = self.look().planned, self._report
        self._report = _Report(before.number + 1, planned, planned - before.stages_before or before.expected)

    def end_computing(self) -> None:
        """Says that Spark is being stopped: nobody may ask it any more."""
        self.look = None

    def percent(self) -> int:
        """Returns how far the run is, never less than before. Raises what Spark raises when it cannot be asked."""
        self._told = max(self._told, min(PERCENT_MAX, int(self._now())))
        return self._told

    def _now(self) -> float:
        if self.stage != "computing":
            return APPENDED_PERCENT * self.appended
        # Taken once: the other thread takes it away when Spark stops.
        look, report = self.look, self._report
        if look is None:
            return PERCENT_MAX if report.number == self.report_count else STARTED_PERCENT
        planned, stages = look()
        share = share_done(stages, planned - report.stages_before, report.expected)
        return STARTED_PERCENT + (PERCENT_MAX - STARTED_PERCENT) * (report.number + share) / self.report_count
