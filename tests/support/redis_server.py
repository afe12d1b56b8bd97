"""A private Redis (or Valkey) on a unix socket, for tests that want a real server."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

import redis

from mqadmin.supervision.redis_server import NoRedis, find_redis_server, redis_command
from tests.support.children import Child
from tests.support.tools import require
from tests.support.waiting import wait_until

# In the command line of every server that an install or a test starts, whether it is Redis or the wheel's Valkey.
SOCKET_NAME = "redis.sock"


class RedisServer:
    """Starts on entering the context and is killed on leaving it. `url` is a value for REDIS_URL."""

    def __init__(self, folder: Path) -> None:
        self.socket = folder / SOCKET_NAME
        self.url = f"unix://{self.socket}?db=0"
        self._log = folder / "redis.log"
        self._child: Child | None = None

    def __enter__(self) -> RedisServer:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        self._child = Child(redis_command(_binary(), self.socket), self._log)
        wait_until(lambda: answers(self.socket), what="an answer from Redis")

    def held_count(self) -> int:
        """Returns how many tasks Celery workers hold that they have not acknowledged."""
        with redis.Redis(unix_socket_path=str(self.socket)) as client:
            return int(client.hlen("unacked"))

    def connection_count(self) -> int:
        """Returns how many connections Redis has, with the one that asks."""
        with redis.Redis(unix_socket_path=str(self.socket)) as client:
            return len(client.client_list())

    def stop(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child = None


def answers(socket: Path) -> bool:
    """Says whether a Redis that listens on the unix socket answers PING."""
    with redis.Redis(unix_socket_path=str(socket)) as client:
        try:
            return bool(client.ping())
        except redis.ConnectionError:
            return False


def _binary() -> Path:
    try:
        return find_redis_server()
    except NoRedis as error:
        require(condition=False, reason=str(error))
        raise
