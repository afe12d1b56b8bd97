"""`runconsumer` and the start of Django, as a person meets them on the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from consumer.listener import Registry
from consumer.management.commands import runconsumer

ROOT = Path(__file__).parents[2]

CLASHING = """
from consumer import listener

@listener(group="billing", topic="orders", wanted_instances=1)
def one(message): ...

@listener(group="billing", topic="invoices", wanted_instances=2)
def other(message): ...
"""


def manage(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env={**os.environ, "MQADMIN_APPS": "", **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.slow
def test_an_unknown_group_is_one_line_that_lists_the_known_ones() -> None:
    done = manage("runconsumer", "nobody", MQADMIN_APPS="examples.shop")
    assert done.returncode == 1
    assert (
        done.stderr.strip()
        == "CommandError: no listener declares the group 'nobody'; known are: billing, ledger, mailing"
    )


def test_without_any_listeners_the_line_says_how_to_name_an_app(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing_declared = Registry()
    nothing_declared.freeze()
    monkeypatch.setattr(runconsumer, "registry", nothing_declared)
    with pytest.raises(CommandError, match="MQADMIN_APPS"):
        call_command("runconsumer", "nobody")


@pytest.mark.slow
def test_declarations_that_contradict_each_other_stop_every_command(tmp_path: Path) -> None:
    app = tmp_path / "clashing"
    app.mkdir()
    (app / "__init__.py").touch()
    (app / "listeners.py").write_text(CLASHING)
    done = manage("check", MQADMIN_APPS="clashing", PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    assert (
        "?: (consumer.E003) group 'billing' has two values of wanted_instances: 1 in clashing.listeners.one and 2 in"
        " clashing.listeners.other; give it once"
    ) in done.stderr.splitlines()


def test_the_engine_runs_without_django() -> None:
    script = "import sys; import consumer.engine.push_consumer; assert 'django' not in sys.modules"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
