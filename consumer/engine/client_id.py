"""A member's name: `host@pid#random`.

Never the same twice: containers share addresses and pid 1, and forked workers share what was made before the fork,
so the random part is made when the consumer starts, in the process in which it runs.
"""

from __future__ import annotations

import os
import secrets
import socket


def new_client_id() -> str:
    return f"{socket.gethostname()}@{os.getpid()}#{secrets.token_hex(6)}"
