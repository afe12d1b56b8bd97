"""The same tests on PostgreSQL: models, synchroniser, selectors, timeline, sockets, actions, audit, people."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.postgres import PostgresServer

ROOT = Path(__file__).parents[2]
SUITES = (
    "actions",
    "audit",
    "clusters",
    "configuration",
    "hosting",
    "jobs",
    "lag",
    "live",
    "management",
    "observing",
    "people",
    "rebalances",
    "topics",
)


@pytest.mark.postgres
@pytest.mark.timeout(300)
def test_data_side_of_the_console_works_on_postgresql() -> None:
    with PostgresServer() as server:
        ended = subprocess.run(
            [
                sys.executable,
                *("-m", "pytest", "-q", "-p", "no:cacheprovider"),
                *("-m", "not java and not redis and not postgres and not journey"),
                *(str(ROOT / "tests" / "mqadmin" / suite) for suite in SUITES),
            ],
            cwd=ROOT,
            env={**os.environ, "DATABASE_URL": server.url},
            capture_output=True,
            text=True,
            check=False,
        )
    assert ended.returncode == 0, ended.stdout[-8000:] + ended.stderr[-2000:]
