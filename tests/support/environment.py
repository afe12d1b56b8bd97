"""The environment of a test run, set before Django reads its settings (loaded by `-p` in pyproject.toml).

Every run has a data folder of its own, removed at its end, so that no test meets the state of an install. Each worker
of a parallel run has a folder of its own in it; what they share lies above.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

# Of all workers of this run.
SHARED_FOLDER = "MQADMIN_TESTS_SHARED"

if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ[SHARED_FOLDER] = os.environ["MQADMIN_DATA"]
    folder = os.path.join(os.environ["MQADMIN_DATA"], os.environ["PYTEST_XDIST_WORKER"])
    os.makedirs(folder, mode=0o700, exist_ok=True)
    os.environ["MQADMIN_DATA"] = folder
elif "MQADMIN_DATA" not in os.environ:
    os.environ["MQADMIN_DATA"] = tempfile.mkdtemp(prefix="mqadmin-tests-")
    atexit.register(shutil.rmtree, os.environ["MQADMIN_DATA"], ignore_errors=True)
