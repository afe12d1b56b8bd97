"""A private Redis on a unix socket, for tests that want the real one."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

import redis

from mqadmin.supervision.redis_server import NoRedis, find_redis_server, redis_command
from tests.support.children import Child
from tests.support.tools import require
from tests.support.waiting import wait_until


class RedisServer:
    """Starts on entering, is gone on leaving. `url` as REDIS_URL takes it."""

    def __init__(self, folder: Path) -> None:
        self.socket = folder / "redis.sock"
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
        wait_until(self._answers, what="an answer from Redis")

    def stop(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child = None

    def _answers(self) -> bool:
        client = redis.Redis(unix_socket_path=str(self.socket))
        try:
            return bool(client.ping())
        except redis.ConnectionError:
            return False
        finally:
            client.close()


def _binary() -> Path:
    try:
        return find_redis_server()
    except NoRedis as error:
        require(condition=False, reason=str(error))
        raise
