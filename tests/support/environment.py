"""The environment of a test run, set before Django reads its settings (loaded by `-p` in pyproject.toml).

Every run has a data folder of its own, removed at its end, so that no test meets the state of an install. Each worker
of a parallel run has a folder of its own in it; what they share lies above.

Temporary files lie in memory where there is enough of it and TMPDIR doesn't say where else: half of the system's time
of quick tests goes into a disk. No test needs files that outlive the machine.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

import psutil

# Of all workers of this run.
SHARED_FOLDER = "MQADMIN_TESTS_SHARED"
# Linux's file system in memory.
MEMORY = "/dev/shm"
# Twice what a whole run has in it at once.
FREE_BYTES_MIN = 8 * 1024**3


def has_room_in_memory() -> bool:
    """Returns whether tests may keep their files in memory."""
    if not os.path.isdir(MEMORY):
        return False
    return min(shutil.disk_usage(MEMORY).free, psutil.virtual_memory().available) >= FREE_BYTES_MIN


if "TMPDIR" not in os.environ and has_room_in_memory():
    os.environ["TMPDIR"] = MEMORY

if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ[SHARED_FOLDER] = os.environ["MQADMIN_DATA"]
    folder = os.path.join(os.environ["MQADMIN_DATA"], os.environ["PYTEST_XDIST_WORKER"])
    os.makedirs(folder, mode=0o700, exist_ok=True)
    os.environ["MQADMIN_DATA"] = folder
elif "MQADMIN_DATA" not in os.environ:
    os.environ["MQADMIN_DATA"] = tempfile.mkdtemp(prefix="mqadmin-tests-")
    atexit.register(shutil.rmtree, os.environ["MQADMIN_DATA"], ignore_errors=True)
