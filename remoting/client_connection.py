"""A client's end of a connection: it always reads on, and handles whatever has come at once.

Two ends that both stop reading while their own output is not read would wait for each other for ever. A server stops
(`server_connection.py`), so a client must not: those who send on it wait in `drained()` instead.
"""

from __future__ import annotations

import sys

from remoting.complaints import ComplaintLog
from remoting.connection import REQUESTS_AT_ONCE_MAX, WRITE_BUFFER_BYTES_MAX, Connection, Handler
from remoting.memory_budget import MemoryBudget


class ClientConnection(Connection):
    """Has a budget of its own: a client's connections are few, and to servers that it chose."""

    def __init__(
        self,
        handler: Handler[ClientConnection],
        *,
        complaints: ComplaintLog | None = None,
        write_buffer_bytes_max: int = WRITE_BUFFER_BYTES_MAX,
    ) -> None:
        super().__init__(handler, MemoryBudget(), complaints or ComplaintLog(), write_buffer_bytes_max)

    def data_received(self, data: bytes) -> None:
        self.last_active_s = self._clock()
        requests = self._requests_in(self._read(data, sys.maxsize))
        for start in range(0, len(requests), REQUESTS_AT_ONCE_MAX):
            if self.is_open:
                self._hand_over(requests[start : start + REQUESTS_AT_ONCE_MAX])
        if self._is_stream_broken:
            self.close()
