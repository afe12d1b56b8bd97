"""Files in the store's `config` folder, replaced atomically with a backup, as RocketMQ's `ConfigManager` does.

A save writes a draft, flushes it, keeps the present file as `.bak` and renames the draft into place; the folder is
flushed last. A load that finds the file missing or unreadable takes the backup, and says so in the log.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

from broker.engine.store.files import backup_of
from remoting.wire.bodies.document import read_body
from remoting.wire.codes import ResponseCode
from remoting.wire.errors import BodyError, MessageError

logger = logging.getLogger(__name__)

T = TypeVar("T")


class ConfigFileUnreadable(Exception):
    """Neither a file nor its backup can be read; the text names both and the remedy."""


class ConfigFileUnwritable(MessageError):
    """A file cannot be written; the request that should have changed it is refused, and nothing has changed."""

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(f"{path} cannot be written: {error.strerror or error}", ResponseCode.SERVICE_NOT_AVAILABLE)


def save_config_file(path: Path, document: msgspec.Struct | str) -> None:
    """Replaces the file by the document as JSON, or by the text as it is. Raises ConfigFileUnwritable."""
    try:
        replace_file(path, document.encode() if isinstance(document, str) else msgspec.json.encode(document))
    except OSError as error:
        logger.error("%s cannot be written: %s", path, error)
        raise ConfigFileUnwritable(path, error) from error


def replace_file(path: Path, data: bytes) -> None:
    """Replaces the file's content; when it returns, `data` survives a power cut. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.tmp")
    with draft.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    if path.exists():
        backup = backup_of(path)
        backup.unlink(missing_ok=True)
        os.link(path, backup)
    draft.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def load_config_file(path: Path, document_type: type[T]) -> T | None:
    """Reads a JSON file; see `load_or_backup`."""
    return load_or_backup(path, partial(read_body, document_type))


def load_or_backup(path: Path, parse: Callable[[bytes], T]) -> T | None:
    """Reads the file, or its backup where that is missing or damaged; returns None where neither exists.

    `parse` raises BodyError or UnicodeDecodeError. Raises ConfigFileUnreadable when what exists can't be read.
    """
    problems: list[str] = []
    for candidate in (path, backup_of(path)):
        try:
            document = parse(candidate.read_bytes())
        except FileNotFoundError:
            continue
        except (OSError, BodyError, UnicodeDecodeError) as error:
            problems.append(f"{candidate}: {error}")
            continue
        if problems:
            logger.error("%s; taking the backup %s", "; ".join(problems), candidate)
        return document
    if problems:
        raise ConfigFileUnreadable("; ".join([*problems, "mend one of them, or move both away to start without"]))
    return None
