"""uvicorn's websockets, except that a client that does not answer is gone at once, with what it did not read.

uvicorn pings every client, and gives it up when the answer does not come in time; or when a close is not answered. It
then waits until the client has read what lies in the buffer, which one that reads nothing never does: the buffer and
the socket would stay for as long as its machine answers for it.
"""

from __future__ import annotations

from uvicorn._types import ASGISendEvent
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

# So a client that does not answer is gone within PING_INTERVAL_S + PING_TIMEOUT_S.
PING_INTERVAL_S = 20.0
PING_TIMEOUT_S = 20.0


class AnsweringWebSocket(WebSocketsSansIOProtocol):
    """A connection that is aborted where uvicorn's own would be closed in time."""

    def keepalive_timeout(self) -> None:
        super().keepalive_timeout()
        self.transport.abort()

    async def send(self, message: ASGISendEvent) -> None:
        await super().send(message)
        if message["type"] == "websocket.close" and self.close_timer is not None:
            self.close_timer.cancel()
            self.close_timer = self.loop.call_later(self.close_timeout, self.transport.abort)
