"""The same tests on PostgreSQL: models, synchroniser, selectors, sockets, actions, audit, people, outbox, inbox."""

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
    "deadletters",
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
@pytest.mark.timeout(900)
def test_data_side_of_the_console_works_on_postgresql() -> None:
    # What the web process sets for itself when it is imported, as another test may have done here.
    environment = {name: value for name, value in os.environ.items() if name != "MQADMIN_DATABASE_POOL"}
    with PostgresServer() as server:
        ended = subprocess.run(
            [
                sys.executable,
                *("-m", "pytest", "-q", "-p", "no:cacheprovider"),
                *("-m", "not java and not redis and not postgres and not journey and not sqlite"),
                *(str(ROOT / "tests" / "mqadmin" / suite) for suite in SUITES),
                *(str(ROOT / "tests" / "consumer" / suite) for suite in ("outbox", "failures", "test_inbox.py")),
            ],
            cwd=ROOT,
            env={**environment, "DATABASE_URL": server.url},
            capture_output=True,
            text=True,
            check=False,
        )
    assert ended.returncode == 0, ended.stdout[-8000:] + ended.stderr[-2000:]
