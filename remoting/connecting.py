"""Making a TCP connection to a broker or name server, and why none could be made."""

from __future__ import annotations

import asyncio
import errno
import os
import socket

from remoting.connection import Connection, Handler


class ConnectError(ConnectionError):
    """No connection could be made to `address`; `reason` in a few words."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"cannot connect to {address}: {reason}")
        self.address = address
        self.reason = reason


async def connect(
    host: str,
    port: int,
    handler: Handler,
    timeout_ms: int,
    *,
    stops_reading_when_full: bool = True,
) -> Connection:
    """Raises ConnectError."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            _, connection = await loop.create_connection(
                lambda: Connection(handler, stops_reading_when_full=stops_reading_when_full), host, port
            )
    except TimeoutError as error:
        raise ConnectError(f"{host}:{port}", f"nothing answered within {timeout_ms} ms") from error
    except OSError as error:
        raise ConnectError(f"{host}:{port}", _reason(error)) from error
    return connection


def _reason(error: OSError) -> str:
    """ "Connection refused", without asyncio's wrapping."""
    if error.errno is not None and error.errno in errno.errorcode and not isinstance(error, socket.gaierror):
        return os.strerror(error.errno)
    return error.strerror or str(error)
