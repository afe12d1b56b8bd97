"""One process of librocketmq_process.py, and what it has printed."""

from __future__ import annotations

import importlib.util
import itertools
import json
import sys
from pathlib import Path
from typing import Any

from tests.support.children import Child
from tests.support.tools import require
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tests/support/librocketmq_process.py"
# It asks for new routes, and so for its retry topic, every 20 to 30 s.
ENDED_WITHIN_S = 150.0
READY_WITHIN_S = 120.0
# Its shutdown sometimes waits for a pull that the broker holds, up to 15 s and what the broker adds.
STOP_GRACE_S = 60.0
_numbers = itertools.count(1)


def require_librocketmq() -> None:
    require(importlib.util.find_spec("rocketmq"), "the wheel rocketmq is not installed")


class NativeProcess:
    """`words`: the script's arguments after the action. The library's own files go to `folder`."""

    def __init__(self, folder: Path, action: str, *words: str | int) -> None:
        self._words = [action, *map(str, words)]
        # Of its own: broadcasting members keep their offsets there.
        home = folder / f"{action}-{next(_numbers)}"
        home.mkdir()
        self._child = Child(
            [sys.executable, str(SCRIPT), *self._words],
            home.with_suffix(".log"),
            env={"HOME": str(home), "PYTHONPATH": str(ROOT)},
        )

    def lines(self) -> list[dict[str, Any]]:
        """So far."""
        lines = self._child.output().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("\n")]

    @property
    def pid(self) -> int:
        return self._child.pid

    def await_ready(self) -> None:
        """Until its consumer has started."""
        wait_until(lambda: "ready\n" in self._child.output(), READY_WITHIN_S, f"the start of {self._words}")

    def ended(self) -> list[dict[str, Any]]:
        """All lines, when it has ended by itself."""
        wait_until(lambda: not self._child.is_running, ENDED_WITHIN_S, f"the end of {self._words}")
        self._check()
        return self.lines()

    def stop(self) -> list[dict[str, Any]]:
        """SIGTERM, once it has started; all lines."""
        self.await_ready()
        self._child.stop(STOP_GRACE_S)
        self._check()
        return self.lines()

    def kill(self) -> None:
        """SIGKILL."""
        self._child.kill()

    def _check(self) -> None:
        if self._child.process.returncode != 0:
            raise AssertionError(f"{self._words} ended with {self._child.process.returncode}:\n{self._child.output()}")
