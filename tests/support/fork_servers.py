"""Fork servers of tests: whether one can be asked already."""

from __future__ import annotations

import os
import socket
from pathlib import Path


def takes_connections(path: Path) -> bool:
    """Tells whether a fork server listens at the socket `path`, which is there a moment before that."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        return connection.connect_ex(os.fspath(path)) == 0
