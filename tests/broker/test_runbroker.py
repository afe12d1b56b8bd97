"""`manage.py runbroker` from outside: one clear line for each thing that can be wrong, and an exit code."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from broker.engine.store.store_folder import STORE_FORMAT
from tests.support.our_broker import OurBroker
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.journey


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "manage.py", "runbroker", "--port=0", "--namesrv-port=0", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


def assert_refused(result: subprocess.CompletedProcess[str], *words: str) -> None:
    assert result.returncode not in (0, -signal.SIGTERM)
    assert "Traceback" not in result.stderr + result.stdout
    (line,) = [line for line in result.stderr.splitlines() if "INFO" not in line]
    for word in words:
        assert word in line, line


def test_runbroker_names_a_taken_port(tmp_path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        assert_refused(run(f"--store={tmp_path}", f"--port={port}"), str(port), "taken", "another port")


@pytest.mark.parametrize(
    ("option", "word"),
    [
        ("--transaction-timeout=never", "no time"),
        ("--transaction-timeout=0", "no time"),
        ("--transaction-check-interval=86401", "a day at most"),
        ("--transaction-check-max=-1", "no count"),
    ],
)
def test_runbroker_refuses_a_time_or_count_of_transactions_that_makes_no_sense(tmp_path, option, word) -> None:
    result = run(f"--store={tmp_path / 'store'}", option)
    assert result.returncode != 0
    assert "Traceback" not in result.stderr
    assert word in result.stderr


def test_runbroker_names_a_store_that_is_no_folder(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    assert_refused(run(f"--store={tmp_path / 'file'}"), str(tmp_path / "file"))


def test_runbroker_names_a_store_of_another_version(tmp_path) -> None:
    with OurBroker(tmp_path / "store"):
        pass
    record = tmp_path / "store" / "store.json"
    fields = json.loads(record.read_text())
    name = next(name for name, value in fields.items() if value == STORE_FORMAT)
    record.write_text(json.dumps(fields | {name: 99}))
    assert_refused(run(f"--store={tmp_path / 'store'}"), "version 99", f"reads version {STORE_FORMAT}")


def test_runbroker_refuses_a_store_that_another_one_uses(tmp_path) -> None:
    with OurBroker(tmp_path / "store"):
        assert_refused(run(f"--store={tmp_path / 'store'}"), str(tmp_path / "store"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_runbroker_names_a_folder_without_rights(tmp_path) -> None:
    result = run("--store=/proc/nobody/store")
    assert_refused(result, "/proc/nobody")


@pytest.mark.parametrize(
    "argument", ["--port=99999", "--namesrv-port=-1", "--port=x", "--name=my broker", "--cluster="]
)
def test_runbroker_names_an_argument_that_cannot_be(tmp_path, argument) -> None:
    result = run(f"--store={tmp_path}", argument)
    assert result.returncode == 2
    assert f"argument {argument.partition('=')[0]}: " in result.stderr.splitlines()[-1]


def test_runbroker_will_not_advertise_an_address_that_nobody_can_reach(tmp_path) -> None:
    assert_refused(run(f"--store={tmp_path}", "--host=0.0.0.0"), "--advertise")


def test_runbroker_stops_cleanly_on_sigterm_and_sigint(tmp_path) -> None:
    broker = OurBroker(tmp_path / "store")
    with broker:
        assert broker.stop() == 0
        assert "Traceback" not in broker.output()
        broker.start()
        os.kill(broker.pid, signal.SIGINT)
        wait_until(lambda: not broker.is_running)
        assert broker.stop() == 0
        assert "closed cleanly before" in broker.output() or "new" in broker.output()


class ShortOfDescriptors(OurBroker):
    def _command(self) -> list[str]:
        return ["sh", "-c", 'ulimit -n 256; exec "$@"', "sh", *super()._command()]


def test_runbroker_serves_on_while_a_client_takes_all_descriptors(tmp_path) -> None:
    """Checkpoints, segments and queues need some too: what they lack would stop the store."""
    broker = ShortOfDescriptors(tmp_path / "store").start()
    host, _, port = broker.broker.partition(":")
    with contextlib.ExitStack() as sockets:
        sockets.callback(broker.stop)
        for _ in range(400):
            sockets.enter_context(socket.create_connection((host, int(port)), timeout=120))
        wait_until(lambda: "connections are open already" in broker.output(), what="the refusal in the log")
        open_files = len(os.listdir(f"/proc/{broker.pid}/fd"))
    assert open_files < 200
    assert "Too many open files" not in broker.output()
