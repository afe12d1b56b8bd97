"""Addresses at which no connection can be made."""

from __future__ import annotations

import pytest

from remoting.connecting import ConnectError, connect
from tests.support.children import free_port
from tests.support.memory_network import Recorder


async def test_a_refused_connection_names_the_address() -> None:
    port = free_port()
    with pytest.raises(ConnectError, match=f"cannot connect to 127.0.0.1:{port}: Connection refused"):
        await connect("127.0.0.1", port, Recorder(), 1000)


@pytest.mark.parametrize("host", ["x" * 64, "\u202e", "a\0b"])
async def test_a_name_that_no_host_can_have_is_said_to_be_that(host: str) -> None:
    with pytest.raises(ConnectError, match="this is no name of a host"):
        await connect(host, 9876, Recorder(), 1000)


async def test_a_host_that_does_not_exist_is_named() -> None:
    with pytest.raises(ConnectError, match=r"no-such-host\.invalid:9876: "):
        await connect("no-such-host.invalid", 9876, Recorder(), 5000)
