"""Of a parallel run (`tests/support/parallel.py`): each file is in one share, and Apache's servers end in time.

Two processes never give the same port, also where each is of a run of its own (`tests/support/children.py`).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from tests.support.children import free_port
from tests.support.parallel import Shares, Uses, scope_of, sort_key, uses

FILES = sorted(Path(__file__).parent.rglob("test_*.py"))


@pytest.mark.parametrize("workers", [1, 2, 3, 16])
def test_each_file_is_in_the_share_of_one_worker(workers: int) -> None:
    shares = [Shares(workers, own) for own in range(workers)]
    assert [file for file in FILES if sum(share.is_own(file) for share in shares) != 1] == []


def test_shares_are_about_the_same_size_and_stay_what_they_were() -> None:
    shares = [Shares(3, own) for own in range(3)]
    first, again = ([[file for file in FILES if share.is_own(file)] for share in shares] for _ in range(2))
    assert first == again
    sizes = [sum(file.stat().st_size for file in files) for files in first]
    assert max(sizes) - min(sizes) <= max(file.stat().st_size for file in FILES)


def test_what_uses_apaches_brokers_runs_first_then_what_uses_its_clients() -> None:
    scopes = ("contract", "consumer", "spark", "tests/journeys/test_a.py", "tests/broker/test_a.py")
    ordered = sorted(product(scopes, reversed(Uses)), key=lambda one: sort_key(*one))
    assert [kind for _, kind in ordered] == sorted(kind for _ in scopes for kind in Uses)


def test_groups_come_before_what_takes_minutes_and_before_what_is_short() -> None:
    scopes = (
        "contract",
        "spark",
        "tests/mqadmin/test_postgres.py::test[a]",
        "tests/journeys/test_up.py",
        "tests/test_docs.py",
    )
    assert sorted(scopes, key=lambda scope: sort_key(scope, Uses.NEITHER)) == list(scopes)


def test_a_scope_uses_what_one_of_its_tests_does(request: pytest.FixtureRequest) -> None:
    """By the tests of this run: those of a file alone use nothing of Apache's, with the journeys some do."""
    found = uses(request.session.items)
    assert found[scope_of(request.node.nodeid)] == Uses.NEITHER
    journeys = [one for one in request.session.items if one.nodeid.startswith("tests/journeys/")]
    with_brokers = [one for one in journeys if "every_cluster" in getattr(one, "fixturenames", ())]
    named = [one for one in journeys if re.search(r"[\[-](old_)?apache[\]-]", one.nodeid)]
    assert {found[scope_of(one.nodeid)] for one in (*with_brokers, *named)} <= {Uses.BROKERS}


REPORTING = """
import pytest
from tests.support.parallel import run_and_report

def pytest_runtest_protocol(item, nextitem):
    run_and_report(item, nextitem)
    return True

def pytest_runtest_logreport(report):
    if hasattr(report, "node"):
        print("reported", report.head_line, report.when, report.outcome)

@pytest.fixture
def no_setup():
    assert False

@pytest.fixture
def no_teardown():
    yield
    assert False
"""
REPORTED = """
import pytest

def test_passes(): pass
def test_fails(): assert False
def test_skips(): pytest.skip("now")
def test_has_no_setup(no_setup): pass
def test_has_no_teardown(no_teardown): pass
"""


@pytest.mark.slow
def test_a_worker_with_a_share_reports_calls_and_what_did_not_pass(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(REPORTING)
    (tmp_path / "test_reported.py").write_text(REPORTED)
    (tmp_path / "pytest.ini").write_text("[pytest]")
    command = [sys.executable, "-m", "pytest", "-p", "xdist", "-n1", "-q", "-s", "-p", "no:cacheprovider"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment |= {"PYTHONPATH": str(Path(__file__).parents[1]), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert re.findall(r"reported (.*)", run.stdout) == [
        "test_passes call passed",
        "test_fails call failed",
        "test_skips call skipped",
        "test_has_no_setup setup failed",
        "test_has_no_teardown call passed",
        "test_has_no_teardown teardown failed",
    ]
    assert "1 failed, 2 passed, 1 skipped, 2 errors" in run.stdout


def test_two_processes_never_give_the_same_port() -> None:
    give = "from tests.support.children import free_port; print(*[free_port(-2, 3) for _ in range(50)])"
    ours = {port + distance for port in [free_port(-2, 3) for _ in range(50)] for distance in (-2, 0, 3)}
    theirs = subprocess.run(
        [sys.executable, "-c", give], cwd=Path(__file__).parents[1], check=True, capture_output=True
    )
    assert not ours & {int(port) + distance for port in theirs.stdout.split() for distance in (-2, 0, 3)}
