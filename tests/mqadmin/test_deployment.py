"""docs/OPERATING.md: its environment passes Django's own deployment checks, and its units are all processes of `up`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from mqadmin.supervision.processes import Install, processes

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^# /etc/mqadmin/environment\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_each_process_of_up_has_a_unit(tmp_path: Path) -> None:
    install = Install(
        base_dir=ROOT,
        data=tmp_path,
        redis_socket=None,
        redis_url="redis://127.0.0.1:6379/0",
        web_host="127.0.0.1",
        web_port=8000,
        instances=1,
        runs_broker=True,
        namesrv="127.0.0.1:9876",
        broker_port=10911,
        with_traffic=False,
        with_reports=True,
    )
    specs = [spec for stage in processes(install) for spec in stage]
    on_their_own = {spec.name for stage in processes(replace(install, forks=False)) for spec in stage}
    assert on_their_own | {"fork-server"} == {spec.name for spec in specs}
    queues = {spec.command[spec.command.index("-Q") + 1] for spec in specs if "-Q" in spec.command}
    page = (ROOT / "docs" / "OPERATING.md").read_text()
    assert set(re.findall(r"^\| `mqadmin-.* -Q (\w+) ", page, re.MULTILINE)) == queues
    units = set(re.findall(r"^\| `mqadmin-(\w+)` \|", page, re.MULTILINE))
    # systemd starts what `up` has its fork server fork; `prepare` is run by hand.
    assert units | {"fork-server", "prepare"} == {spec.name.removesuffix("-1") for spec in specs}


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
