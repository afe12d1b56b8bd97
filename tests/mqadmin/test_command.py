"""The command line: what needs no models loads nothing of the console, which would be most of its start and memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mqadmin.command import WITHOUT_APPS

ROOT = Path(__file__).parents[2]
# What apps, Celery and the cache would bring.
NOT_NEEDED = {"celery", "django.db.models", "kombu", "mqadmin.clusters.models", "redis", "rest_framework"}
PROGRAM = f"""
import sys
from mqadmin.command import main
try:
    code = main()
except SystemExit as exit:
    code = exit.code
print(sorted({NOT_NEEDED} & set(sys.modules)))
sys.exit(code)
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", WITHOUT_APPS)
def test_a_command_that_needs_no_models_loads_no_apps(name: str) -> None:
    ended = run("-c", PROGRAM, name, "--help")
    assert ended.returncode == 0, ended.stderr
    assert f"{name} [-h]" in ended.stdout
    assert ended.stdout.splitlines()[-1] == "[]"


def test_settings_that_cannot_be_read_are_one_line_there_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQADMIN_INSTANCES", "many")
    ended = run("-m", "mqadmin.command", "store", "show", ".")
    assert (ended.returncode, ended.stdout, len(ended.stderr.splitlines())) == (1, "", 1)
    assert "MQADMIN_INSTANCES" in ended.stderr
