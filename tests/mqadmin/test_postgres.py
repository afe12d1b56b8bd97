"""The same tests on PostgreSQL: models, synchroniser, selectors, sockets, actions, REST, audit, people, outbox."""

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
    "api",
    "audit",
    "bad_input",
    "brokers",
    "cluster_settings",
    "clusters",
    "configuration",
    "deadletters",
    "groups",
    "hosting",
    "jobs",
    "lag",
    "live",
    "management",
    "observing",
    "ownership",
    "people",
    "producers",
    "rebalances",
    "tokens",
    "topics",
)


@pytest.mark.postgres
@pytest.mark.timeout(1500)
def test_data_side_of_the_console_works_on_postgresql() -> None:
    # What the web process sets for itself when it is imported, as another test may have done here.
    environment = {name: value for name, value in os.environ.items() if name != "MQADMIN_DATABASE_POOL"}
    with PostgresServer() as server:
        ended = subprocess.run(
            [
                sys.executable,
                *("-m", "pytest", "-q", "-p", "no:cacheprovider"),
                *("-m", "not java and not redis and not postgres and not journey and not sqlite"),
                # Asks thousands of things of all operations; what differs between databases shows in the others.
                f"--ignore={ROOT / 'tests/mqadmin/api/test_schemathesis.py'}",
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
