"""The fork server's own program, as `manage.py up` starts it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import psutil
import pytest

from mqadmin.supervision import fork_server
from mqadmin.supervision.fork_server import ForkServer
from tests.support.fork_servers import takes_connections
from tests.support.install import ROOT
from tests.support.waiting import eventually

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not fork_server.IS_SUPPORTED, reason="the fork server needs Linux"),
]


async def test_a_process_has_its_name_whichever_variables_it_gets(tmp_path: Path) -> None:
    """As with `MQADMIN_DATA=… manage.py up`: a shell puts that variable first, and each process gets it once more."""
    given = {"MQADMIN_DATA": str(tmp_path)}
    socket = tmp_path / "fork.sock"
    server = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "mqadmin.preloaded", str(socket)), cwd=ROOT, env={**given, **os.environ, **given}
    )
    with (tmp_path / "output").open("wb") as output:
        try:
            await eventually(lambda: takes_connections(socket))
            program = ("http.server", "--bind", "127.0.0.1", "0")
            process = await ForkServer(socket).fork(program, given, output.fileno(), signal.SIGTERM)
            try:
                named = f"python -m {' '.join(program)}"
                await eventually(lambda: psutil.Process(process.pid).cmdline()[0] == named)
            finally:
                process.send_signal(signal.SIGKILL)
                await process.wait()
        finally:
            server.kill()
            await server.wait()
