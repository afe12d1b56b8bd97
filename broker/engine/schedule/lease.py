"""The scheduler's lease: one driver holds it at a time, each under an epoch of its own.

Epochs only grow, also over restarts of the broker, because counting begins at the second of its start. So a driver that
was suspended while another one took over is recognised by its old epoch. Times are ms of a monotonic clock.
"""

from __future__ import annotations

from dataclasses import dataclass

# A lease lasts at least and at most so long, whatever is asked for: a driver that died must not hold it for long.
LEASE_MS_MIN = 200
LEASE_MS_MAX = 30_000


@dataclass(frozen=True, slots=True)
class Grant:
    """The answer to a request for the lease. `holder` and `epoch` are those in force, granted or not.

    `is_new`: the holder or its epoch changed with this answer.
    """

    granted: bool
    epoch: int
    holder: str
    is_new: bool = False


class Lease:
    """The lease: its epoch, its holder ("" while it has none), and when it expires."""

    def __init__(self, first_epoch: int) -> None:
        """`first_epoch`: the number after which epochs are counted."""
        self.epoch = first_epoch
        self.holder = ""
        self.expires_ms = 0

    def ask(self, driver: str, epoch: int, lease_ms: int, now_ms: int) -> Grant:
        """Grants, renews or refuses the lease. A driver that has no epoch yet sends 0."""
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
        """Returns whether a step under `epoch` may be carried out."""
        return epoch == self.epoch and self.is_held(now_ms)

    def release(self, epoch: int) -> bool:
        """Frees the lease that was granted under `epoch`; returns False when that one is not held any more."""
        if epoch != self.epoch or not self.holder:
            return False
        self.holder = ""
        self.expires_ms = 0
        return True
