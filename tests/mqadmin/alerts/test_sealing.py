"""Addresses and secrets are sealed, and open under the same secret key alone."""

from __future__ import annotations

from typing import Any

import pytest

from mqadmin.alerts.sealing import CannotOpen, opened, seal


def test_what_is_sealed_opens_again_and_says_nothing() -> None:
    values = {"url": "https://a/hook?key=k", "secret": "密"}
    sealed = seal(values)
    assert "hook" not in sealed
    assert seal(values) != sealed
    assert opened(sealed) == values
    assert opened("") == {}


def test_under_another_key_it_does_not_open(settings: Any) -> None:
    sealed = seal({"url": "https://a/"})
    settings.SECRET_KEY = "another"
    with pytest.raises(CannotOpen):
        opened(sealed)
