"""Our own broker as the process that a user starts: `manage.py runbroker` on free ports."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import TracebackType

from tests.support.asking import has_route
from tests.support.children import Child, free_port
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]
READY_WITHIN_S = 120.0
_READY = re.compile(r"^broker ready: namesrv (\S+:\d+) broker (\S+:\d+)$", re.MULTILINE)


class OurBroker:
    """Starts on entering, stops on leaving. `start` after `stop` or `kill` takes the same ports and store again.

    `namesrv` and `broker` are "host:port" and known once it is ready. `arguments` go to runbroker as they are.
    A `patient` one handles requests however late they come.
    """

    name = "ours"

    def __init__(
        self,
        store: Path,
        flush: str = "sync",
        *,
        port: int = 0,
        namesrv_port: int = 0,
        arguments: tuple[str, ...] = (),
        env: dict[str, str] | None = None,
        patient: bool = False,
    ) -> None:
        self.store = store
        self.flush = flush
        self._port = port or free_port()
        self._namesrv_port = namesrv_port or free_port()
        self._arguments = arguments
        self._env = env
        self._program = ("-m", "tests.support.patient_broker") if patient else ("manage.py",)
        self._child: Child | None = None
        self.namesrv = ""
        self.broker = ""

    def __enter__(self) -> OurBroker:
        try:
            return self.start()
        except BaseException:
            self.kill()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> OurBroker:
        """Returns when it answers a route request."""
        log = self.store.parent / f"{self.store.name}.broker.log"
        log.unlink(missing_ok=True)
        self._child = Child(self._command(), log, cwd=ROOT, env={"PYTHONUNBUFFERED": "1", **(self._env or {})})
        ready = wait_until(self._ready_line, READY_WITHIN_S, "runbroker's line `broker ready`")
        self.namesrv, self.broker = ready[1], ready[2]
        self._namesrv_port = int(self.namesrv.rpartition(":")[2])
        self._port = int(self.broker.rpartition(":")[2])
        wait_until(lambda: has_route(self.namesrv), READY_WITHIN_S, "a route from our name server")
        return self

    def _command(self) -> list[str]:
        return [
            sys.executable,
            *self._program,
            "runbroker",
            f"--port={self._port}",
            f"--namesrv-port={self._namesrv_port}",
            f"--store={self.store}",
            f"--flush={self.flush}",
            *self._arguments,
        ]

    def _ready_line(self) -> re.Match[str] | None:
        child = self._running()
        output = child.output()
        if not child.is_running:
            raise AssertionError(f"runbroker ended with {child.process.returncode}:\n{output}")
        return _READY.search(output)

    def _running(self) -> Child:
        if self._child is None:
            raise AssertionError("the broker was not started")
        return self._child

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    def is_running(self) -> bool:
        return self._child is not None and self._child.is_running

    def output(self) -> str:
        return self._running().output()

    def stop(self) -> int:
        """SIGTERM; its exit code."""
        return self._child.stop() if self._child else 0

    def kill(self) -> None:
        """SIGKILL."""
        if self._child is not None:
            self._child.kill()
