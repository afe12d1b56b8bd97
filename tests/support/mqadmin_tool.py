"""Apache's command line `mqadmin` (5.4.0): one JVM for any number of commands."""

from __future__ import annotations

import base64
import subprocess
import threading
from pathlib import Path
from types import TracebackType

from tests.support.children import Child
from tests.support.java import APACHE_JARS, JAVA_TESTS, java_command

ANSWER_WITHIN_S = 120.0
# What it prints where a server did not answer within 5 s, of which no option makes more (`DefaultMQAdminExt`). A busy
# machine may need as long for the first request of all, with which the tool loads its classes.
ANSWERED_TOO_LATE = "RemotingTimeoutException"
TRIES = 5


class MqAdminTool:
    """As a context manager. Commands run one after the other."""

    def __init__(self, folder: Path) -> None:
        source = str(JAVA_TESTS / "tools/Tools.java")
        self._child = Child(
            java_command([APACHE_JARS], source, folder),
            folder / "tools.log",
            cwd=folder,
            env={"ROCKETMQ_HOME": str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def __enter__(self) -> MqAdminTool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._child.kill()

    def run(self, *arguments: str) -> str:
        """Returns what the command printed. Raises AssertionError when it does not end."""
        process = self._child.process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\t".join(arguments).encode() + b"\n")
        process.stdin.flush()
        too_late = threading.Timer(ANSWER_WITHIN_S, self._child.kill)
        too_late.start()
        try:
            line = process.stdout.readline()
        finally:
            too_late.cancel()
        if not line:
            raise AssertionError(f"mqadmin {arguments} did not end\n{self._child.output()}")
        return base64.b64decode(line).decode(errors="replace")

    def run_until_answered(self, *arguments: str) -> str:
        """Returns what the command printed, tried again where the answer came too late: for what may be done twice."""
        for _ in range(TRIES):
            printed = self.run(*arguments)
            if ANSWERED_TOO_LATE not in printed:
                break
        return printed
