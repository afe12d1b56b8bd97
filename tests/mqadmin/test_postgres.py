"""The same tests on PostgreSQL: models, synchroniser, selectors, sockets, actions, pages, REST, audit and people."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.postgres import PostgresServer

ROOT = Path(__file__).parents[2]
# Each in a pytest and on a server of its own, so that workers run them side by side; they take about as long as each
# other. Their suites are paths below tests/.
PARTS = {
    "observing and people": (
        *("mqadmin/observing", "mqadmin/clusters", "mqadmin/lag", "mqadmin/objectives", "mqadmin/rebalances"),
        *("mqadmin/reports", "mqadmin/subscriptions", "mqadmin/people", "mqadmin/live", "mqadmin/metrics"),
        *("mqadmin/bad_input", "consumer"),
    ),
    "acting, pages and REST": (
        *("mqadmin/action_runs", "mqadmin/actions", "mqadmin/alerts", "mqadmin/audit", "mqadmin/brokers"),
        "mqadmin/cluster_settings",
        *("mqadmin/configuration", "mqadmin/deadletters", "mqadmin/deadletter_rules", "mqadmin/events"),
        *("mqadmin/flows", "mqadmin/groups", "mqadmin/hosting", "mqadmin/jobs", "mqadmin/management"),
        *("mqadmin/mending", "mqadmin/ownership", "mqadmin/producers", "mqadmin/replays", "mqadmin/replay_files"),
        *("mqadmin/retries", "mqadmin/topics", "mqadmin/console", "mqadmin/api", "mqadmin/tokens"),
    ),
}
NOT_ON_POSTGRESQL = {"supervision": "processes, no database"}
# What differs between databases shows in the other tests.
LEFT_OUT = {
    "mqadmin/clusters/test_migrations.py": "goes back over most migrations, by the models alone",
    "mqadmin/api/test_schemathesis.py": "asks thousands of things of all operations",
    "mqadmin/console/test_chinese_pages.py": "renders every page for its words",
    "mqadmin/console/test_live_page.py": "renders every page for its live regions",
    "mqadmin/console/test_pushed_regions.py": "renders every page for its pushed regions",
    "mqadmin/console/test_stored_words.py": "looks at the catalogue",
    "mqadmin/people/test_matrix.py": "asks for every page as everybody",
    "mqadmin/replays/test_rate.py": "holds rates by the clock",
    "consumer/engine": "no database",
}


def test_each_suite_of_the_console_is_in_one_part() -> None:
    folders = {path.parent.name for path in (ROOT / "tests" / "mqadmin").glob("*/test_*.py")}
    parted = [suite.removeprefix("mqadmin/") for suites in PARTS.values() for suite in suites if suite != "consumer"]
    assert sorted(folders) == sorted([*parted, *NOT_ON_POSTGRESQL])


def test_what_is_left_out_is_there() -> None:
    assert [path for path in LEFT_OUT if not (ROOT / "tests" / path).exists()] == []


@pytest.mark.postgres
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", PARTS)
def test_data_side_of_the_console_works_on_postgresql(part: str) -> None:
    with PostgresServer() as server:
        ended = subprocess.run(
            [
                sys.executable,
                # Without logs, which would leave no room for the reason of a failure.
                *("-m", "pytest", "-q", "-p", "no:cacheprovider", "--show-capture=no"),
                *("-m", "database and not (java or redis or postgres or journey or sqlite or spark)"),
                *(f"--ignore={ROOT / 'tests' / path}" for path in LEFT_OUT),
                *(str(ROOT / "tests" / suite) for suite in PARTS[part]),
            ],
            cwd=ROOT,
            env={**os.environ, "DATABASE_URL": server.url},
            capture_output=True,
            text=True,
            check=False,
        )
        # Its last lines tell why connections were lost, if they were.
        server_output = server.output()
    assert ended.returncode == 0, ended.stdout[-8000:] + ended.stderr[-2000:] + server_output[-4000:]
