"""A file of offsets that is whole whenever it is read: written beside the old one, which becomes the backup.

    offsets.json        as Java's `offsets.json`: {"offsetTable": {queue: offset, …}}
    offsets.json.bak    what it held before

Blocks: callers are threads. Raises OSError.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.progress import read_reset, write_reset
from remoting.wire.errors import WireError

FILE_NAME = "offsets.json"
# A file of this size is none of ours: some 100,000 queues make 15 MB.
FILE_BYTES_MAX = 64 * 1024 * 1024


class OffsetsUnreadable(Exception):
    """A file of offsets is torn, and its backup does not help."""


def read_offsets(folder: Path) -> dict[MessageQueue, int]:
    """Returns the file's offsets, or the backup's where the file is missing, empty or torn; {} where neither has any.

    Raises OffsetsUnreadable where one is torn and the other has none: with {} the group would begin somewhere else,
    and nobody would know why (Java does so where there is no backup).
    """
    faults: list[str] = []
    for path in (folder / FILE_NAME, _backup(folder)):
        try:
            with path.open("rb") as file:
                text = file.read(FILE_BYTES_MAX + 1)
        except FileNotFoundError:
            continue
        if not text:
            continue
        try:
            return _parse(text)
        except (WireError, ValueError) as error:
            faults.append(f"{path}: {error}")
    if faults:
        raise OffsetsUnreadable(
            f"{'; '.join(faults)}. Repair the file, or move it away: the group then begins where consume_from says"
        )
    return {}


def write_offsets(folder: Path, offsets: Mapping[MessageQueue, int]) -> None:
    """Replaces the file; after a crash at any moment the file or its backup is whole."""
    path, new = folder / FILE_NAME, folder / f"{FILE_NAME}.new"
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(write_reset(offsets))
        file.flush()
        os.fsync(descriptor)
    if path.exists() and path.stat().st_size:
        os.replace(path, _backup(folder))
    os.replace(new, path)
    _flush_folder(folder)


def _parse(text: bytes) -> dict[MessageQueue, int]:
    if len(text) > FILE_BYTES_MAX:
        raise ValueError(f"more than {FILE_BYTES_MAX} bytes")
    offsets = read_reset(text)
    if any(offset < 0 for offset in offsets.values()):
        raise ValueError("an offset is below 0")
    return offsets


def _backup(folder: Path) -> Path:
    return folder / f"{FILE_NAME}.bak"


def _flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
