"""A Celery worker of the project as the process that an operator starts."""

from __future__ import annotations

import sys
from pathlib import Path
from types import TracebackType

from tests.support.children import STOP_GRACE_S, Child
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]
READY_WITHIN_S = 120.0


class CeleryWorker:
    """Starts on entering and is ready then; stops on leaving. `env` says which Redis and which name server.

    `app`: the module of another Celery application than the project's.
    """

    def __init__(
        self,
        name: str,
        queue: str,
        folder: Path,
        env: dict[str, str],
        concurrency: int = 1,
        options: tuple[str, ...] = (),
        app: str = "mqadmin",
    ) -> None:
        self._command = [
            *(sys.executable, "-m", "celery", "-A", app, "worker"),
            *("-Q", queue, "-n", f"{name}@%h", "-c", str(concurrency), "-l", "INFO"),
            *("--without-gossip", "--without-mingle", "--without-heartbeat"),
            *options,
        ]
        self._log = folder / f"{name}.log"
        self._env = {"C_FORCE_ROOT": "1", "PYTHONUNBUFFERED": "1", **env}
        self._child: Child | None = None

    def __enter__(self) -> CeleryWorker:
        return self.start()

    def start(self) -> CeleryWorker:
        """Also after a kill."""
        self._child = Child(self._command, self._log, cwd=ROOT, env=self._env)
        wait_until(lambda: " ready." in self._running().output(), READY_WITHIN_S, "the worker's line `ready`")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _running(self) -> Child:
        assert self._child is not None, "the worker was not started"
        assert self._child.is_running, f"the worker ended:\n{self._child.output()}"
        return self._child

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    def is_running(self) -> bool:
        return self._child is not None and self._child.is_running

    def output(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def stop(self) -> int:
        """SIGTERM; its exit code."""
        return self._child.stop() if self._child is not None else 0

    def ended(self, grace_s: float = STOP_GRACE_S) -> int:
        """Its exit code, after a signal that was sent already; after `grace_s` SIGKILL."""
        return self._child.ended(grace_s) if self._child is not None else 0

    def kill(self) -> None:
        """SIGKILL to the main process and all that it started, as when the machine goes."""
        self._running()
        assert self._child is not None
        self._child.kill()

    def kill_main(self) -> None:
        """SIGKILL to the main process alone, as the kernel or an operator would."""
        child = self._running()
        child.process.kill()
        child.process.wait()
