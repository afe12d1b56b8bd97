"""Makes a TCP connection to a broker or name server, or says in a few words why none could be made."""

from __future__ import annotations

import asyncio
import errno
import os
import socket

from remoting.client_connection import ClientConnection
from remoting.complaints import ComplaintLog
from remoting.connection import WRITE_BUFFER_BYTES_MAX, Handler


class ConnectError(ConnectionError):
    """Raised when no connection could be made to `address` ("host:port"); `reason` is a few words."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"cannot connect to {address}: {reason}")
        self.address = address
        self.reason = reason


async def connect(
    host: str,
    port: int,
    handler: Handler[ClientConnection],
    timeout_ms: int,
    *,
    complaints: ComplaintLog | None = None,
    write_buffer_bytes_max: int = WRITE_BUFFER_BYTES_MAX,
    unacknowledged_s: float | None = None,
) -> ClientConnection:
    """Connects to `host`, a name or an address, and returns the open connection.

    `unacknowledged_s`: see `ClientConfig`.
    Raises ConnectError when nothing listens there, the name is unknown, or `timeout_ms` has passed.
    """
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            transport, connection = await loop.create_connection(
                lambda: ClientConnection(handler, complaints=complaints, write_buffer_bytes_max=write_buffer_bytes_max),
                host,
                port,
            )
    except TimeoutError as error:
        raise ConnectError(f"{host}:{port}", f"nothing answered within {timeout_ms} ms") from error
    except OSError as error:
        raise ConnectError(f"{host}:{port}", _reason(error)) from error
    except ValueError as error:
        # A name server may tell anything: a NUL, a label of 64 characters, a character that no name may have.
        raise ConnectError(f"{host}:{port}", "this is no name of a host") from error
    # Linux alone has it.
    if unacknowledged_s is not None and hasattr(socket, "TCP_USER_TIMEOUT"):
        unacknowledged_ms = round(unacknowledged_s * 1000)
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, unacknowledged_ms)
    return connection


def _reason(error: OSError) -> str:
    """Returns the operating system's words, such as "Connection refused", without asyncio's around them."""
    if error.errno is not None and error.errno in errno.errorcode and not isinstance(error, socket.gaierror):
        return os.strerror(error.errno)
    return error.strerror or str(error)
