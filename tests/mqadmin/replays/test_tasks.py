"""The task that drives a replay: a step that leaves work hands on to the next, without beat."""

from __future__ import annotations

import pytest

from mqadmin.replays import tasks
from mqadmin.replays.driving import Driven, Left


@pytest.mark.parametrize(("left", "woken"), [(Left.NOW, [7]), (Left.LATER, []), (Left.NOTHING, [])])
def test_a_step_that_leaves_more_to_do_sends_the_next(
    left: Left, woken: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    monkeypatch.setattr(tasks, "drive_step", lambda *_, **__: Driven(left, 0.0))
    monkeypatch.setattr(tasks, "wake", lambda job_id, since: calls.append(job_id))
    tasks.drive_replay(7)
    assert calls == woken
