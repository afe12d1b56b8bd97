"""The limits of sending a replay. Tests take smaller ones."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayLimits:
    """`step_s`: one task; the next goes on. A worker that is stopped (a deploy) waits for it, for less than 10 s.

    `turn_s`: a step ends after one batch, or after that while it is behind its rate, where another replay has nobody
    who drives it: workers are few, and a replay that has its turn once a second holds its rate.
    `batch`: entries claimed together; as many at most may have to be looked for after a crash. `batch_s`: they are
    as many as the rate sends in that time, so that a change of mind is heard within it. `batch_bytes`: of their bodies,
    which are in memory together.
    `send_within_s`: after the claim; a process that stood still for longer sends nothing any more. `settle_after_s`:
    after the claim, when what had no outcome is looked for: the claim, the send and its time-out are over by then, and
    the system has given up what a broker's machine did not acknowledge. `look_again_after_s`: what was not found is
    looked for a second time; a broker that stood still has read by then what had come for it.
    `lease_s`: without a sign of life somebody else drives. `retry_after_s`: until what was not sent is tried again.
    `attempts_max`: then it is refused. `give_up_after_s`: a broker that could not be asked for so long after the claim
    leaves the outcome unknown. `scan_max`: messages of a queue read when one is looked for.
    `judged_from`: sent messages before a replay stops by itself: of few, one that fails is a large share.
    """

    step_s: float = 5.0
    turn_s: float = 0.25
    batch: int = 200
    batch_bytes: int = 32 * 1024 * 1024
    batch_s: float = 0.5
    send_within_s: float = 10.0
    settle_after_s: float = 30.0
    look_again_after_s: float = 1.0
    lease_s: float = 30.0
    retry_after_s: float = 5.0
    attempts_max: int = 12
    give_up_after_s: float = 3600.0
    scan_max: int = 50_000
    judged_from: int = 20


LIMITS = ReplayLimits()
