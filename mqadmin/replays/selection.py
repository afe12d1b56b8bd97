"""When two replays say the same: a digest of whose dead letters, which of them, and where they go."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from mqadmin.deadletters.models import IDENTITY_CHARS


def identity_of(group: str, selection: Mapping[str, Any], target: str, target_topic: str) -> str:
    """Returns the digest that replays have in common which send the same to the same."""
    text = json.dumps([group, selection, target, target_topic], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:IDENTITY_CHARS]
