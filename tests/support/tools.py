"""Tools that a test needs and a user's machine may lack: there it skips, in CI it fails."""

from __future__ import annotations

import os

import pytest


def require(condition: object, reason: str) -> None:
    """Skips the test with `reason`, or fails it where CI=true, unless `condition` holds."""
    if condition:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI must have it: {reason}")
    pytest.skip(reason)
