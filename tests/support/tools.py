"""Tools that a test needs and a user's machine may lack."""

from __future__ import annotations

import pytest


def require(condition: object, reason: str) -> None:
    """Skips the test with `reason` unless `condition` holds. Where CI=true, tests/conftest.py makes that a failure."""
    if not condition:
        pytest.skip(reason)
