"""The folder that holds all state of an embedded install: database, Redis socket, message store, secret key.

Only its owner may look inside: it holds the key that signs sessions.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

SECRET_KEY_FILE = "secret_key"  # noqa: S105 - the file's name, not its content


def open_data_folder(path: Path) -> Path:
    """Returns the folder, absolute, made with mode 0700 when absent. Raises ImproperlyConfigured naming the remedy."""
    folder = path.expanduser().absolute()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ImproperlyConfigured(
            f"the data folder {folder} cannot be made: {error.strerror}; set MQADMIN_DATA to a folder that can"
        ) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ImproperlyConfigured(
            f"the data folder {folder} is not writable: make it so, or set MQADMIN_DATA to another"
        )
    return folder


def secret_key(folder: Path) -> str:
    """Returns the key kept in `folder`, made at the first call; safe when several processes make it at once."""
    path = folder / SECRET_KEY_FILE
    if not path.exists():
        _write_once(path, secrets.token_urlsafe(50))
    return path.read_text(encoding="ascii").strip()


def _write_once(path: Path, text: str) -> None:
    """Writes a complete file or none: a draft is linked under the name; whoever comes second keeps the first one's."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(text)
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
