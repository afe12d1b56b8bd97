"""Somebody who may do everything, logged in and with a token, and brokers that can be changed."""

from __future__ import annotations

from tests.mqadmin.api.conftest import cluster, http, now, token_of  # noqa: F401 - fixtures
