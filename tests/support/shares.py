"""Runs quick tests in several processes side by side, each of which reads and runs its share of the files.

`python -m tests.support.shares` with arguments of pytest's, as `make check` does. Where each process reads every file,
as in a whole run, reading is half the work of quick tests; and to tell one process of each test takes another eighth.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Timer

OPTION = "--share"
# pytest.ExitCode.NO_TESTS_COLLECTED, without half a second for the import of pytest before any process is started.
NO_TESTS = 5
# A share takes a minute. This is longer than a test's time-out, which ends what hangs, but not a test that waits for a
# thread of its own. At SIGABRT Python shows, as pytest asks it to, the stacks of all threads.
ENDS_WITHIN_S = 1500.0
# A row of dots, coloured or not. It is shown at once; what else a process prints, when it has ended.
PROGRESS = re.compile(r"\S+ +\[ *\d+%\]\S*\n")


class Shares:
    """Deals files out as they are found: each to the share that has the fewest bytes so far.

    Every process finds the same files in the same order, and so knows its own without asking.
    """

    def __init__(self, own: int, count: int) -> None:
        self._own = own - 1
        self._bytes = [0] * count
        self._receivers: dict[Path, int] = {}

    @classmethod
    def parse(cls, text: str) -> Shares:
        """Reads "1/3", the first of three shares.

        Raises:
            ValueError: It is something else.
        """
        own, count = (int(number) for number in text.split("/"))
        if not 1 <= own <= count:
            raise ValueError(text)
        return cls(own, count)

    def is_own(self, file: Path) -> bool:
        if file not in self._receivers:
            receiver = self._bytes.index(min(self._bytes))
            self._receivers[file] = receiver
            self._bytes[receiver] += file.stat().st_size
        return self._receivers[file] == self._own


def run_shares(arguments: Sequence[str], count: int, ends_within_s: float = ENDS_WITHIN_S) -> int:
    """Runs pytest with these arguments once for each share, all at once; returns what the whole run exits with.

    Prints what each of them printed, whole, when it ends. A share without a test that the arguments select is no error;
    one that does not end is ended by SIGABRT.
    """

    def run(own: int) -> int:
        return _run_share(arguments, f"{own}/{count}", ends_within_s)

    with ThreadPoolExecutor(count) as threads:
        codes = set(threads.map(run, range(1, count + 1)))
    return max(codes - {NO_TESTS}, key=abs, default=NO_TESTS)


def _run_share(arguments: Sequence[str], share: str, ends_within_s: float) -> int:
    color = "yes" if sys.stdout.isatty() else "auto"
    command = [sys.executable, "-m", "pytest", f"--color={color}", OPTION, share, *arguments]
    held = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        ending = Timer(ends_within_s, process.send_signal, [signal.SIGABRT])
        ending.start()
        for line in process.stdout:
            if PROGRESS.fullmatch(line):
                print(line, end="", flush=True)
            else:
                held.append(line)
        ending.cancel()
    sys.stdout.write("".join(held))
    sys.stdout.flush()
    return process.returncode


if __name__ == "__main__":
    sys.exit(run_shares(sys.argv[1:], (os.cpu_count() or 1) + 1))
