"""Bounds what all connections of one server keep together: half-received requests, unsent answers, requests to clients.

`ServerConnection` bounds each connection alone; these are the bounds of all together. Beyond a bound connections are
cut until it is met again: of received bytes first the connections whose last whole request is oldest, of unsent bytes
first those with most.

Invariant: `received_bytes` and `unsent_bytes` are the sums over the connections that were reported and not forgotten.
"""

from __future__ import annotations

from typing import Protocol

# Half-received requests of all connections together: sixteen of the largest frames, or a full read (256 KiB) of a
# thousand clients that send faster than they are served.
RECEIVED_BYTES_MAX = 256 * 1024 * 1024
# Written and not read by the peers, all connections together: full buffers (8 MiB) of 32 slow readers.
UNSENT_BYTES_MAX = 256 * 1024 * 1024
# Connections are cut until this share of a bound is left, so that the search for them is rare.
CUT_TO_SHARE = 0.75
# Requests to clients that wait for an answer, all connections together; about 1 KB each. They time out after seconds.
PENDING_MAX = 65_536


class BudgetedConnection(Protocol):
    """What the budget needs of a connection."""

    @property
    def unsent_bytes(self) -> int:
        """Returns the bytes that were written and that the peer has not read yet."""

    def cut(self, reason: str) -> None:
        """Closes the connection at once and releases what it has received and not sent."""


class MemoryBudget:
    """Callers: the connections of one server, from the event loop."""

    def __init__(
        self,
        *,
        received_bytes_max: int = RECEIVED_BYTES_MAX,
        unsent_bytes_max: int = UNSENT_BYTES_MAX,
        pending_max: int = PENDING_MAX,
    ) -> None:
        self._received_bytes_max = received_bytes_max
        self._unsent_bytes_max = unsent_bytes_max
        self._pending_max = pending_max
        # In order of their last whole request.
        self._received: dict[BudgetedConnection, int] = {}
        self._unsent: dict[BudgetedConnection, int] = {}
        self.received_bytes = 0
        self.unsent_bytes = 0
        self.pending_count = 0

    @property
    def can_add_pending(self) -> bool:
        """Returns whether one more request to a client may wait for its answer."""
        return self.pending_count < self._pending_max

    def set_received(self, connection: BudgetedConnection, received_bytes: int, *, has_progressed: bool) -> None:
        """Records the bytes of requests that are incomplete or not handled yet; cuts connections beyond the bound.

        `has_progressed`: a request of this connection became complete since the last call.
        """
        before = self._received.get(connection, 0)
        if has_progressed or not received_bytes:
            self._received.pop(connection, None)
        if received_bytes:
            self._received[connection] = received_bytes
        self.received_bytes += received_bytes - before
        if self.received_bytes > self._received_bytes_max:
            self._cut_stalled_senders()

    def set_unsent(self, connection: BudgetedConnection, unsent_bytes: int) -> None:
        """Records the bytes that wait for the peer to read, after each write; cuts connections beyond the bound."""
        before = self._unsent.pop(connection, 0)
        if unsent_bytes:
            self._unsent[connection] = unsent_bytes
        self.unsent_bytes += unsent_bytes - before
        if self.unsent_bytes > self._unsent_bytes_max:
            self._cut_slow_readers()

    def forget(self, connection: BudgetedConnection) -> None:
        """Subtracts what the connection held; it was closed, or is being cut."""
        self.received_bytes -= self._received.pop(connection, 0)
        self.unsent_bytes -= self._unsent.pop(connection, 0)

    def _cut_stalled_senders(self) -> None:
        reason = (
            f"all clients together have sent {self.received_bytes} bytes of unfinished requests, this one longest ago"
        )
        enough = self._received_bytes_max * CUT_TO_SHARE
        while self._received and self.received_bytes > enough:
            connection = next(iter(self._received))
            self.forget(connection)
            connection.cut(reason)

    def _cut_slow_readers(self) -> None:
        """Counts anew first: connections report what they write, and not what their peers read meanwhile."""
        self._unsent = {connection: unsent for connection in self._unsent if (unsent := connection.unsent_bytes)}
        self.unsent_bytes = sum(self._unsent.values())
        if self.unsent_bytes <= self._unsent_bytes_max:
            return
        reason = f"all clients together have not read {self.unsent_bytes} bytes, this one most"
        enough = self._unsent_bytes_max * CUT_TO_SHARE
        for connection in sorted(self._unsent, key=self._unsent.__getitem__, reverse=True):
            if self.unsent_bytes <= enough:
                break
            self.forget(connection)
            connection.cut(reason)
