"""The production environment of docs/OPERATING.md passes Django's own deployment checks."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^# /etc/mqadmin/environment\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_check_deploy_is_clean_under_the_documented_environment(tmp_path: Path) -> None:
    found = _BLOCK.search((ROOT / "docs" / "OPERATING.md").read_text())
    assert found, "docs/OPERATING.md has no environment file"
    pairs = dict(line.split("=", 1) for line in found[1].splitlines() if line and not line.startswith("#"))
    # The example apps and servers are not there.
    pairs |= {"MQADMIN_DATA": str(tmp_path / "data"), "MQADMIN_APPS": ""}
    done = subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"],
        cwd=ROOT,
        env={**os.environ, **pairs},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "no issues" in done.stdout
