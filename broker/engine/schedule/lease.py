"""Who may drive the scheduler: one holder at a time, each with its own epoch.

Epochs only grow, also over restarts of the broker, because counting begins at the second of its start: a driver that
slept through its own replacement is told so by its old number. Times are ms of a clock that never jumps.
"""

from __future__ import annotations

from dataclasses import dataclass

# A driver that asks for less or more gets this much; nobody may keep the lease long after its death.
LEASE_MS_MIN = 200
LEASE_MS_MAX = 30_000


@dataclass(frozen=True, slots=True)
class Grant:
    """`is_new`: the holder changed with this answer. `holder` and `epoch` name who drives, granted or not."""

    granted: bool
    epoch: int
    holder: str
    is_new: bool = False


class Lease:
    """`holder` is "" while nobody holds it."""

    def __init__(self, first_epoch: int) -> None:
        self.epoch = first_epoch
        self.holder = ""
        self.expires_ms = 0

    def ask(self, driver: str, epoch: int, lease_ms: int, now_ms: int) -> Grant:
        """Grants, renews or refuses. `epoch` 0 asks anew, and so does an epoch that is no longer in force."""
        lease_ms = max(LEASE_MS_MIN, min(lease_ms, LEASE_MS_MAX))
        if self.is_held(now_ms):
            if driver != self.holder or epoch not in (0, self.epoch):
                return Grant(False, self.epoch, self.holder)
            if epoch == self.epoch:
                self.expires_ms = now_ms + lease_ms
                return Grant(True, self.epoch, self.holder)
        self.epoch += 1
        self.holder = driver
        self.expires_ms = now_ms + lease_ms
        return Grant(True, self.epoch, self.holder, is_new=True)

    def is_held(self, now_ms: int) -> bool:
        return bool(self.holder) and now_ms < self.expires_ms

    def allows(self, epoch: int, now_ms: int) -> bool:
        """Whether a step under `epoch` may be carried out."""
        return epoch == self.epoch and self.is_held(now_ms)

    def release(self, epoch: int) -> bool:
        """Whether there was something to release: the holder of `epoch` is gone."""
        if epoch != self.epoch or not self.holder:
            return False
        self.holder = ""
        self.expires_ms = 0
        return True
