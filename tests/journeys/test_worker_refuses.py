"""A Celery worker whose listeners are declared wrong ends at its start, and says what is wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.install import ROOT

pytestmark = pytest.mark.journey


@pytest.mark.parametrize("pool", ["prefork", "threads"])
def test_a_worker_with_a_wrong_declaration_does_not_start(pool: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "celery", "-A", "mqadmin", "worker", "-Q", "loops", "-c", "1", "-P", pool]
    env = {"MQADMIN_DATA": str(tmp_path), "MQADMIN_APPS": "tests.support.misdeclared", "C_FORCE_ROOT": "1"}
    ended = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **env}, capture_output=True, text=True, timeout=180, check=False
    )
    said = ended.stdout + ended.stderr
    assert ended.returncode != 0, said
    assert "this worker does not start, its listeners are declared wrong:" in said
    assert "(consumer.E001)" in said
    assert "or ders" in said
