"""The two ids of a message, upper-case hex.

    offset message id   | 4 or 16 address | 4 port | 8 commit-log offset |               made by the broker
    unique key          | 4 address | 2 pid | 4 random | 4 ms of the month | 2 counter |  made by the sender

Java: `MessageDecoder.createMessageId`, `MessageClientIDSetter`. Where Java has a class-loader hash we have random
bytes: two factories in one process, or a forked child, never share a prefix.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from itertools import count
from socket import AF_INET, AF_INET6, inet_ntop, inet_pton

from remoting.wire.errors import BodyError

Host = tuple[str, int]

_PORT = struct.Struct(">i")
_PORT_AND_OFFSET = struct.Struct(">iq")
_HEX_CHARS = (32, 56)


@lru_cache(maxsize=4096)
def host_bytes(host: Host) -> bytes:
    """Encodes address and port as stored: 8 bytes for IPv4, 20 for IPv6. Raises BodyError for a name or garbage.

    An IPv4 address mapped into IPv6, as dual-stack sockets report it, is stored as IPv4: C++ reads nothing else.
    """
    address, port = host
    address = address.partition("%")[0].removeprefix("::ffff:")
    family = AF_INET6 if ":" in address else AF_INET
    try:
        return inet_pton(family, address) + _PORT.pack(port)
    except (OSError, ValueError, struct.error) as error:
        raise BodyError(f"not an address and port: {host!r}") from error


@lru_cache(maxsize=4096)
def host_from_bytes(raw: bytes) -> Host:
    """Decodes what `host_bytes` encoded; `raw` is 8 or 20 bytes."""
    family = AF_INET if len(raw) == 8 else AF_INET6
    return inet_ntop(family, raw[:-4]), _PORT.unpack(raw[-4:])[0]


def offset_message_id(host: Host, commit_log_offset: int) -> str:
    """Returns the broker's id of the message at `commit_log_offset`.

    ("10.0.0.1", 10911), 1000 gives 0A0000010000…03E8.
    """
    return (host_bytes(host) + commit_log_offset.to_bytes(8, "big", signed=True)).hex().upper()


def decode_offset_message_id(message_id: str) -> tuple[Host, int]:
    """Returns store host and commit-log offset. Raises BodyError for anything but 32 or 56 hex digits."""
    if len(message_id) not in _HEX_CHARS:
        raise BodyError(f"not an offset message id: {message_id[:64]!r}")
    try:
        raw = bytes.fromhex(message_id)
    except ValueError as error:
        raise BodyError(f"not an offset message id: {message_id!r}") from error
    if 2 * len(raw) != len(message_id):
        raise BodyError(f"not an offset message id: {message_id!r}")
    port, commit_log_offset = _PORT_AND_OFFSET.unpack(raw[-12:])
    address, _ = host_from_bytes(raw[:-8])
    return (address, port), commit_log_offset


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class UniqueKeyFactory:
    """Makes unique keys: 32 hex digits, 65,536 per millisecond before one could repeat.

    Safe to call from several threads, and in a child after a fork: the process id is checked each time.
    """

    def __init__(self, address: str = "127.0.0.1", clock: Callable[[], int] = _now_ms) -> None:
        self._address = inet_pton(AF_INET, address)
        self._clock = clock
        self._month = (0, 0)
        self._pid = -1
        self._prefix = ""
        self._counter = count()

    def next(self) -> str:
        """Returns a new unique key."""
        pid = os.getpid()
        if pid != self._pid:
            self._start(pid)
        now_ms = self._clock()
        start_ms, end_ms = self._month
        if not start_ms <= now_ms < end_ms:
            self._month = start_ms, end_ms = _month_around(now_ms)
        return f"{self._prefix}{now_ms - start_ms:08X}{next(self._counter) & 0xFFFF:04X}"

    def _start(self, pid: int) -> None:
        self._prefix = (self._address + (pid & 0xFFFF).to_bytes(2, "big") + os.urandom(4)).hex().upper()
        self._counter = count(int.from_bytes(os.urandom(2), "big"))
        self._pid = pid


def _month_around(now_ms: int) -> tuple[int, int]:
    """Returns the starts of the local calendar month that holds `now_ms` and of the next; Java uses local time, too."""
    first = datetime.fromtimestamp(now_ms / 1000).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    following = first.replace(year=first.year + first.month // 12, month=first.month % 12 + 1)
    return int(first.timestamp() * 1000), int(following.timestamp() * 1000)
