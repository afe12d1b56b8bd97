"""Private headers of the scheduler's lease and steps (docs/PRIVATE-REQUESTS.md)."""

from __future__ import annotations

from remoting.wire.headers.typed import Header, Int64


class SchedulerLeaseHeader(Header, kw_only=True):
    """29011. Asks for the scheduler's lease, or renews it. `driver` names the process; `epoch` 0 asks anew."""

    driver: str
    epoch: Int64 = 0
    lease_ms: Int64
    # The response waits up to this long for something that is due earlier than the agenda said.
    wait_ms: Int64 = 0


class SchedulerLeaseResponseHeader(Header, kw_only=True):
    """`epoch` counts up with each new holder. The agenda is in the body (`bodies/scheduler.py`)."""

    granted: bool
    epoch: Int64
    holder: str
    broker_now_ms: Int64


class SchedulerStepHeader(Header, kw_only=True):
    """29012. Carries out what is due of one kind and key up to `until_ms`: `kind` "delay", `key` the level."""

    epoch: Int64
    kind: str
    key: str
    until_ms: Int64


class SchedulerStepResponseHeader(Header, kw_only=True):
    """`late_ms`: how long after due the latest of the delivered was; -1 when nothing was delivered."""

    delivered: Int64
    late_ms: Int64
