"""What the connections of one server share: memory for what is half received and for what is not read by its peers,
the loop's time, and room for requests that wait for an answer.

Each connection alone is bounded in `connection.py`; these are the bounds of all together, so that many clients cannot
do what one may not. What is over a bound costs those who cause it their connection: first, of what is half received,
who has made no progress for longest; of what is owed, who owes most.
"""

from __future__ import annotations

from typing import Protocol

# Half-received requests of all connections together: sixteen of the largest frames, or a full read (256 KiB) of a
# thousand clients that send faster than they are served.
RECEIVED_BYTES_MAX = 256 * 1024 * 1024
# Written and not read by the peers, all connections together: full buffers (8 MiB) of 32 slow readers.
OWED_BYTES_MAX = 256 * 1024 * 1024
# Cut down to this share of a bound, so that the search for whom to cut is rare.
RELIEF_SHARE = 0.75
# Requests to clients that wait for an answer, all connections together; about 1 KB each. They time out after seconds.
PENDING_MAX = 65_536
# One round of all connections that have more to be done than one turn takes: what a request of somebody else waits.
ROUND_S = 0.02
# One connection's turn in it. Below the lower bound the switching would cost more than the work.
TURN_S_MAX = 0.005
TURN_S_MIN = 0.001


class Sharer(Protocol):
    """A connection as seen from here."""

    @property
    def owed_bytes(self) -> int: ...

    def cut(self, reason: str) -> None:
        """Closes at once; what was received or is owed is let go."""


class Shares:
    """Callers: the connections, from the event loop."""

    def __init__(
        self,
        *,
        received_bytes_max: int = RECEIVED_BYTES_MAX,
        owed_bytes_max: int = OWED_BYTES_MAX,
        pending_max: int = PENDING_MAX,
    ) -> None:
        self._received_bytes_max = received_bytes_max
        self._owed_bytes_max = owed_bytes_max
        self._pending_max = pending_max
        # In order of their last progress.
        self._received: dict[Sharer, int] = {}
        self._owed: dict[Sharer, int] = {}
        self.received_bytes = 0
        self.owed_bytes = 0
        self.pending_count = 0
        self.busy_count = 0

    @property
    def turn_s(self) -> float:
        """How long a connection may be served before the others come."""
        return max(TURN_S_MIN, min(TURN_S_MAX, ROUND_S / max(1, self.busy_count)))

    @property
    def has_room_to_ask(self) -> bool:
        return self.pending_count < self._pending_max

    def received(self, sharer: Sharer, kept_bytes: int, *, has_progressed: bool) -> None:
        """`kept_bytes` of what it has sent wait to become whole, or for its turn."""
        before = self._received.get(sharer, 0)
        if has_progressed or not kept_bytes:
            self._received.pop(sharer, None)
        if kept_bytes:
            self._received[sharer] = kept_bytes
        self.received_bytes += kept_bytes - before
        if self.received_bytes > self._received_bytes_max:
            self._relieve_received()

    def _relieve_received(self) -> None:
        reason = (
            f"all clients together have sent {self.received_bytes} bytes of unfinished requests, this one longest ago"
        )
        enough = self._received_bytes_max * RELIEF_SHARE
        while self._received and self.received_bytes > enough:
            sharer = next(iter(self._received))
            self.gone(sharer)
            sharer.cut(reason)

    def written(self, sharer: Sharer, owed_bytes: int) -> None:
        """`owed_bytes` wait for the peer to read; less than what is remembered as soon as it does."""
        before = self._owed.pop(sharer, 0)
        if owed_bytes:
            self._owed[sharer] = owed_bytes
        self.owed_bytes += owed_bytes - before
        if self.owed_bytes > self._owed_bytes_max:
            self._recount_owed()

    def _recount_owed(self) -> None:
        """Peers read without our being told: only a bound that seems broken makes us look."""
        self._owed = {sharer: owed for sharer in self._owed if (owed := sharer.owed_bytes)}
        self.owed_bytes = sum(self._owed.values())
        if self.owed_bytes <= self._owed_bytes_max:
            return
        reason = f"all clients together have not read {self.owed_bytes} bytes, this one most"
        enough = self._owed_bytes_max * RELIEF_SHARE
        for sharer in sorted(self._owed, key=self._owed.__getitem__, reverse=True):
            if self.owed_bytes <= enough:
                break
            self.gone(sharer)
            sharer.cut(reason)

    def gone(self, sharer: Sharer) -> None:
        self.received_bytes -= self._received.pop(sharer, 0)
        self.owed_bytes -= self._owed.pop(sharer, 0)
