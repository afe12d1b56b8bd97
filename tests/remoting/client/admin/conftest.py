"""A server that answers as a test says, and an admin client."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from remoting.client.admin import Admin
from remoting.client.connections import Connections
from tests.support.answering_server import AnsweringServer


@pytest_asyncio.fixture
async def server() -> AsyncIterator[AnsweringServer]:
    async with AnsweringServer() as server:
        yield server


@pytest_asyncio.fixture
async def admin() -> AsyncIterator[Admin]:
    connections = Connections()
    yield Admin(connections)
    await connections.close()
