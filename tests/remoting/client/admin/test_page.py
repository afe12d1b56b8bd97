"""docs/ADMIN-CLIENT.md names every call, and the journey makes it."""

from __future__ import annotations

import re
from pathlib import Path

from remoting.client.admin import Admin
from remoting.client.connections import Connections

ROOT = Path(__file__).parents[4]
# Of our own broker's driver, proven where it drives: tests/broker/test_driving.py.
DRIVEN_ELSEWHERE = {"our_broker.watch_page", "our_broker.scheduler_lease", "our_broker.scheduler_step"}


def calls() -> set[str]:
    """Every public method, as "subject.method"."""
    subjects = vars(Admin(Connections()))
    return {
        f"{name}.{method}"
        for name, subject in subjects.items()
        for method, value in vars(type(subject)).items()
        if callable(value) and not method.startswith("_")
    }


async def test_the_page_has_every_call_and_no_other() -> None:
    page = (ROOT / "docs/ADMIN-CLIENT.md").read_text().partition("## Calls")[2]
    assert set(re.findall(r"`(\w+\.\w+)`", page)) == calls()


async def test_the_journey_makes_every_call() -> None:
    journey = (ROOT / "tests/journeys/test_admin_calls.py").read_text()
    methods = set(re.findall(r"\.(\w+)\b", journey))
    missing = {call for call in calls() - DRIVEN_ELSEWHERE if call.partition(".")[2] not in methods}
    assert not missing
