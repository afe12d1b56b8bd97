"""The environment of a test run, set before Django reads its settings (loaded by `-p` in pyproject.toml).

Every run has a data folder of its own, removed at the end, so that no test meets the state of an install.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

if "MQADMIN_DATA" not in os.environ:
    os.environ["MQADMIN_DATA"] = tempfile.mkdtemp(prefix="mqadmin-tests-")
    atexit.register(shutil.rmtree, os.environ["MQADMIN_DATA"], ignore_errors=True)
