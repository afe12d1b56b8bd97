"""JSON files in the store folder, replaced atomically with a backup, as RocketMQ's `ConfigManager` does.

A save writes a draft, flushes it, keeps the present file as `.bak` and renames the draft into place; the folder is
flushed last. A load that finds the file missing or unreadable takes the backup, and says so.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TypeVar

import msgspec

from remoting.wire.bodies.document import read_body
from remoting.wire.codes import ResponseCode
from remoting.wire.errors import BodyError, MessageError

logger = logging.getLogger(__name__)

T = TypeVar("T")


class FactsUnreadable(Exception):
    """Neither a file nor its backup can be read; the text names both and the remedy."""


class FactsUnwritable(MessageError):
    """A file cannot be written; who asked for what it should hold hears why, and nothing of it is known."""

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(f"{path} cannot be written: {error.strerror or error}", ResponseCode.SERVICE_NOT_AVAILABLE)


def save_facts(path: Path, document: msgspec.Struct) -> None:
    """As `save_json`. Raises FactsUnwritable."""
    try:
        save_json(path, msgspec.json.encode(document))
    except OSError as error:
        logger.error("%s cannot be written: %s", path, error)
        raise FactsUnwritable(path, error) from error


def save_json(path: Path, data: bytes) -> None:
    """When it returns, `data` survives a power cut. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.tmp")
    with draft.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    if path.exists():
        backup = path.with_name(f"{path.name}.bak")
        backup.unlink(missing_ok=True)
        os.link(path, backup)
    draft.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def load_json(path: Path, document_type: type[T]) -> T | None:
    """None where neither file nor backup exists. Raises FactsUnreadable when what exists can't be read."""
    backup = path.with_name(f"{path.name}.bak")
    problems: list[str] = []
    for candidate in (path, backup):
        try:
            document = read_body(document_type, candidate.read_bytes())
        except FileNotFoundError:
            continue
        except (OSError, BodyError) as error:
            problems.append(f"{candidate}: {error}")
            continue
        if problems:
            logger.error("%s; taking the backup %s", "; ".join(problems), candidate)
        return document
    if problems:
        raise FactsUnreadable("; ".join([*problems, "mend one of them, or move both away to start without"]))
    return None
