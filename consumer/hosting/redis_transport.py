"""Celery's Redis transport, such that a worker outlives a Redis that goes away while it holds a task.

When the connection breaks, kombu drops it (`Connection.collect`) and closes its channels afterwards. Closing hands
tasks that are not acknowledged back to Redis, through the connection that is gone: AttributeError, which Celery takes
for the end of the worker, and with it of all instances that it runs. Here they are left to Redis, which gives them to
another worker after the visibility time-out, where it still has them.

A channel that is closed leaves no connection open.
"""

from __future__ import annotations

from typing import Any, cast

from kombu.transport import redis


class QoS(redis.QoS):
    def restore_unacked(self, client: Any = None) -> None:
        """Does nothing where the channel's connection has been dropped."""
        if getattr(self.channel.connection, "client", None) is None:
            cast("dict[str, Any]", self._delivered).clear()
        else:
            super().restore_unacked(client)


class Channel(redis.Channel):
    QoS = QoS

    def close(self) -> None:
        """Closes the channel, and the connection that handing tasks back opened meanwhile: kombu leaves it open."""
        super().close()
        cast("Any", self)._disconnect_pools()


class Transport(redis.Transport):
    Channel = Channel
