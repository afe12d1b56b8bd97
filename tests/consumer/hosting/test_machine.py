from __future__ import annotations

import os
import subprocess
import sys

from consumer.hosting.machine import is_process_gone, process_start, this_machine


def test_a_process_is_gone_when_its_pid_is_free_or_reused() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        started = process_start(child.pid)
        assert started is not None
        assert not is_process_gone(this_machine(), child.pid, started)
        assert is_process_gone(this_machine(), child.pid, started - 1)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert is_process_gone(this_machine(), child.pid, started)  # a zombie runs nothing
    finally:
        child.kill()
        child.wait()
    assert is_process_gone(this_machine(), child.pid, started)


def test_processes_elsewhere_or_unknown_never_count_as_gone() -> None:
    assert not is_process_gone("another machine", os.getpid(), 1)
    assert not is_process_gone(this_machine(), None, None)
    assert not is_process_gone("", None, None)
