"""Values that may be passwords: known by their names, and kept out of the audit.

What was accepted holds none: `change_broker_config` refuses such settings. What was refused is whatever somebody typed,
and its entry keeps of a suspicious text only the names in it.
"""

from __future__ import annotations

import re
from typing import Any

# In the names of settings whose values are passwords or hold them.
SECRET_WORDS = ("password", "secret", "credential", "authenticationuser")
LEFT_OUT = "…"
# The name of a topic may have such a word in it, and gives nothing away.
_NAME = re.compile(r"[\w%|.-]+")


def is_secret(name: str) -> bool:
    """Tells whether a setting of this name is, or holds, a password."""
    return any(word in name.lower() for word in SECRET_WORDS)


def without_secrets(value: Any) -> Any:
    """Returns a value that was typed without what may be a password: of each line only the name before its "="."""
    if isinstance(value, list | tuple):
        return [_names(str(one)) for one in value] if any(is_secret(str(one)) for one in value) else list(value)
    if isinstance(value, dict):
        return {_names_if_secret(str(name)): _of(str(name), one) for name, one in value.items()}
    return _names_if_secret(value) if isinstance(value, str) else value


def _of(name: str, value: Any) -> Any:
    return LEFT_OUT if is_secret(name) and value not in ("", None) else without_secrets(value)


def _names_if_secret(text: str) -> str:
    return _names(text) if is_secret(text) and not _NAME.fullmatch(text) else text


def _names(text: str) -> str:
    return "\n".join(_name(line.strip()) for line in text.splitlines())


def _name(line: str) -> str:
    name, equals, _value = line.partition("=")
    return f"{name.strip()}={LEFT_OUT}" if equals and _NAME.fullmatch(name.strip()) else LEFT_OUT
