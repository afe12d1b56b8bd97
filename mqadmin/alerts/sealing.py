"""Keeps the addresses and secrets of channels encrypted, by a key made from this installation's secret key.

A copy of the database alone opens none of them. With another secret key they cannot be read: they are entered again.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from django.conf import settings
from django.utils.translation import gettext_noop

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

_PURPOSE = b"mqadmin alert channels"
_KEY_BYTES = 32


class CannotOpen(Exception):
    """What was sealed cannot be read with this installation's secret key."""

    def __init__(self) -> None:
        super().__init__(gettext_noop("its address cannot be read with this secret key: set the channel again"))


def seal(values: Mapping[str, str]) -> str:
    return _fernet().encrypt(json.dumps(dict(values)).encode()).decode()


def opened(sealed: str) -> dict[str, str]:
    """Raises CannotOpen."""
    if not sealed:
        return {}
    from cryptography.fernet import InvalidToken  # as in _fernet

    try:
        found: dict[str, str] = json.loads(_fernet().decrypt(sealed.encode()))
    except InvalidToken as error:
        raise CannotOpen from error
    return found


def _fernet() -> Fernet:
    """Every process loads this module and few ever use it: these would take 2 MB of each for itself."""
    from cryptography.fernet import Fernet  # see above
    from cryptography.hazmat.primitives import hashes  # see above
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF  # see above

    derived = HKDF(algorithm=hashes.SHA256(), length=_KEY_BYTES, salt=None, info=_PURPOSE)
    return Fernet(base64.urlsafe_b64encode(derived.derive(settings.SECRET_KEY.encode())))
