"""`runconsumer --autoreload` as a developer meets it: files change under it, one of them with a mistake."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = """
from consumer import listener

@listener(group="billing", topic="orders", tags={tags!r})
def bill(message): ...
"""

# Ctrl-C held down.
BURST = 10

pytestmark = pytest.mark.journey

# A consumer whose stop takes until this process is told, by a line on its standard input.
CHILD = """
import sys
import django
django.setup()
from consumer.autoreload import run_child

class Consumer:
    async def start(self):
        print("started", flush=True)

    async def stop(self):
        print("stopping", flush=True)
        sys.stdin.readline()
        print("stopped", flush=True)

run_child(Consumer)
"""


class Output:
    """The lines of a process so far."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._lines: list[str] = []
        self._arrived = threading.Condition()
        self._thread = threading.Thread(target=self._read, args=(process,), daemon=True)
        self._thread.start()

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            with self._arrived:
                self._lines.append(line)
                self._arrived.notify_all()

    def has(self, words: str, within_s: float = 120) -> bool:
        with self._arrived:
            return self._arrived.wait_for(lambda: any(words in line for line in self._lines), within_s)

    def close(self) -> None:
        self._thread.join(10)
        assert self._process.stdout is not None
        self._process.stdout.close()


class Code:
    """A listeners module. It is touched until the change was seen: the reloader looks first when all is imported."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._stamps = itertools.count(int(time.time()) + 1)

    def become(self, text: str) -> None:
        self._file.write_text(text)
        stamp = next(self._stamps)
        os.utime(self._file, (stamp, stamp))

    def become_until(self, text: str, output: Output, words: str) -> None:
        for _ in range(60):
            self.become(text)
            if output.has(words, within_s=2):
                return
        raise AssertionError(f"no {words!r} in {output}")


def test_a_consumer_is_started_anew_when_its_code_changes_also_after_a_mistake(tmp_path: Path) -> None:
    app = tmp_path / "changing"
    app.mkdir()
    (app / "__init__.py").touch()
    code = Code(app / "listeners.py")
    code.become(CODE.format(tags="paid"))
    process = subprocess.Popen(
        [sys.executable, "-u", "manage.py", "runconsumer", "billing", "--autoreload", "--namesrv", "127.0.0.1:1"],
        cwd=ROOT,
        env={**os.environ, "MQADMIN_APPS": "changing", "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    output = Output(process)
    try:
        assert output.has("orders (paid)")
        code.become_until(CODE.format(tags="refunded"), output, "orders (refunded)")
        code.become_until("this is no Python", output, "waiting for a change of the code")
        code.become_until(CODE.format(tags="created"), output, "orders (created)")
        for _ in range(BURST):
            os.killpg(process.pid, signal.SIGINT)
        assert output.has("group billing stopped")
        assert process.wait(120) == 0
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        output.close()


def test_signals_that_come_while_the_consumer_stops_do_not_cut_that_short() -> None:
    process = subprocess.Popen(
        [sys.executable, "-u", "-c", CHILD],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "mqadmin.settings"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdin is not None
    output = Output(process)
    try:
        assert output.has("started")
        process.send_signal(signal.SIGINT)
        assert output.has("stopping")
        for _ in range(BURST):
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGTERM)
        process.stdin.write("\n")
        process.stdin.flush()
        assert output.has("stopped")
        assert process.wait(120) == 0
    finally:
        process.stdin.close()
        if process.poll() is None:
            process.kill()
            process.wait()
        output.close()
