from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any
from unittest.mock import patch

import pytest

from mqadmin.audit import chain
from mqadmin.audit.models import AuditEntry


@pytest.fixture
def write(db: None) -> Callable[..., AuditEntry]:
    """Writes an entry; `at` is the moment at which it is written."""

    def write(*, at: datetime | None = None, **said: Any) -> AuditEntry:
        told = {"actor": "ann", "action": "create_topic", "cluster": "prod", "subject": "orders", "outcome": "done"}
        entry = AuditEntry(**{**told, **said})
        if at is None:
            return chain.append(entry)
        with patch("mqadmin.audit.chain.timezone.now", return_value=at):
            return chain.append(entry)

    return write
