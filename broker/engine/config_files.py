"""Files in the store's `config` folder, replaced atomically with a backup, as RocketMQ's `ConfigManager` does.

The files of the topics and of the groups change too often to be written whole each time: see `config_table.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

from broker.engine.store.files import Backup, FileLayer, load_or_backup
from remoting.complaints import ComplaintLog
from remoting.wire.bodies.document import read_body
from remoting.wire.codes import ResponseCode
from remoting.wire.errors import BodyError, MessageError

T = TypeVar("T")


class ConfigFileUnreadable(Exception):
    """Raised when neither a file nor its backup can be read; the text names both and the remedy."""


class ConfigFileUnwritable(MessageError):
    """Raised when a file cannot be written: the request that should have changed it is refused; nothing has changed."""

    def __init__(self, path: Path, error: OSError, complaints: ComplaintLog) -> None:
        # Heartbeats and pulls create groups: while the disk takes nothing, each of them fails here.
        complaints.error(path.name, "not written", "%s cannot be written: %s", path, error)
        super().__init__(f"{path} cannot be written: {error.strerror or error}", ResponseCode.SERVICE_NOT_AVAILABLE)


def save_config_file(path: Path, document: msgspec.Struct | str, complaints: ComplaintLog) -> None:
    """Replaces the file by the document as JSON, or by the text as it is.

    Raises ConfigFileUnwritable, of which `complaints` gets a line.
    """
    try:
        replace_file(path, document.encode() if isinstance(document, str) else msgspec.json.encode(document))
    except OSError as error:
        raise ConfigFileUnwritable(path, error, complaints) from error


def replace_file(path: Path, data: bytes) -> None:
    """Replaces the file's content; when it returns, `data` survives a power cut. Raises OSError."""
    FileLayer().replace(path, data, Backup.PREVIOUS)


def load_config_file(path: Path, document_type: type[T]) -> T | None:
    """Reads a JSON file; see `load_config`."""
    return load_config(path, partial(read_body, document_type))


def load_config(path: Path, parse: Callable[[bytes], T]) -> T | None:
    """Reads the file, or its backup where that is missing or damaged; returns None where neither exists.

    `parse` raises BodyError or ValueError. Raises ConfigFileUnreadable when what exists can't be read.
    """

    def parsed(data: bytes) -> T:
        try:
            return parse(data)
        except BodyError as error:
            raise ValueError(str(error)) from error

    try:
        return load_or_backup(path, parsed)
    except ValueError as error:
        raise ConfigFileUnreadable(f"{error}; mend one of them, or move both away to start without") from error
