"""Our programs look for garbage less often than Python does by itself."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from mqadmin.garbage import LOOK_AFTER_OBJECTS


@pytest.mark.slow
@pytest.mark.parametrize("program", ["mqadmin.celery", "mqadmin.command", "mqadmin.web"])
def test_a_program_looks_for_garbage_less_often(program: str) -> None:
    run = "" if program == "mqadmin.celery" else "import sys; sys.argv[1:] = ['--version']; program.main()"
    said = "import atexit, gc; atexit.register(lambda: print('after', gc.get_threshold()[0]))"
    ended = subprocess.run(
        [sys.executable, "-c", f"{said}; import {program} as program; {run}"],
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "mqadmin.settings", "MQADMIN_WEB": "nowhere"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stdout.splitlines()[-1] == f"after {LOOK_AFTER_OBJECTS}", ended.stderr
