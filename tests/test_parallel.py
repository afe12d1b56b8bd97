"""Of a parallel run (`tests/support/parallel.py`): in which order tests are distributed.

Two processes never give the same port, also where each is of a run of its own (`tests/support/children.py`).
"""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from tests.support.children import free_port
from tests.support.parallel import Uses, scope_of, sort_key, uses


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


def test_two_processes_never_give_the_same_port() -> None:
    give = "from tests.support.children import free_port; print(*[free_port(-2, 3) for _ in range(50)])"
    ours = {port + distance for port in [free_port(-2, 3) for _ in range(50)] for distance in (-2, 0, 3)}
    theirs = subprocess.run(
        [sys.executable, "-c", give], cwd=Path(__file__).parents[1], check=True, capture_output=True
    )
    assert not ours & {int(port) + distance for port in theirs.stdout.split() for distance in (-2, 0, 3)}
