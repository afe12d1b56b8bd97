"""How far each delay level has been delivered, kept in RocketMQ's `config/delayOffset.json`.

The log is authoritative: a delivered copy carries the queue offset after its source message's in the field
`prepared_transaction_offset`, which plain messages leave at 0. So the file need not be written with every delivery,
and still nothing is delivered twice after a kill: where the file says that a delivery was under way, the copies that
stand in the log from `deliveringFrom` on show how far it came.

    {"dataVersion": {...}, "deliveringFrom": 1234, "offsetTable": {1: 17, 3: 4}}

`offsetTable`: level to the queue offset of the next entry to deliver. Our own keys, which Apache RocketMQ ignores:
`lanes` (see `level_segments.py`), level to the start of each of its segments but the first to the next entry there;
`deliveringFrom`, the commit-log offset from which on copies may stand that neither table counts, absent when there are
none.

Order of a delivery (`delay_saving.py`): `deliveringFrom` is in the file before the first copy is written; the tables
follow at most `SAVE_INTERVAL_S` later, and never before the copies that they count are flushed. A power cut may
therefore repeat a delivery of the last moments, but never loses one (with flush=async: only what is not flushed yet).
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import msgspec

from broker.engine.store.files import Backup, FileLayer, backup_of
from remoting.wire import lenient_json
from remoting.wire.errors import BodyError

logger = logging.getLogger(__name__)

FILE_NAME = "delayOffset.json"


class DelayProgress(msgspec.Struct):
    """The content of the file: how far each level has been delivered.

    `next_offsets`: level to queue offset; `segments`: level to segment's start to queue offset. `delivering_from` is
    None when both are complete.
    """

    next_offsets: dict[int, int]
    delivering_from: int | None = None
    counter: int = 0
    changed_ms: int = 0
    segments: dict[int, dict[int, int]] = {}


def encode_progress(progress: DelayProgress) -> bytes:
    """Returns the file's JSON, in which RocketMQ's table has numbers as keys, without quotes."""
    fields: dict[str, Any] = {
        "dataVersion": {"counter": progress.counter, "stateVersion": 0, "timestamp": progress.changed_ms},
    }
    if progress.delivering_from is not None:
        fields["deliveringFrom"] = progress.delivering_from
    if progress.segments:
        fields["lanes"] = progress.segments
    table = ",".join(f"{level}:{offset}" for level, offset in sorted(progress.next_offsets.items()))
    head = msgspec.json.encode(fields).decode()[:-1]
    return f'{head},"offsetTable":{{{table}}}}}'.encode()


def decode_progress(data: bytes) -> DelayProgress:
    """Parses the file's JSON. Raises BodyError when it is not RocketMQ's format."""
    fields = lenient_json.loads(data)
    try:
        version = fields.get("dataVersion") or {}
        table = fields.get("offsetTable") or {}
        delivering_from = fields.get("deliveringFrom")
        segments = fields.get("lanes") or {}
        return DelayProgress(
            {int(level): int(offset) for level, offset in table.items()},
            None if delivering_from is None else int(delivering_from),
            int(version.get("counter", 0)),
            int(version.get("timestamp", 0)),
            {
                int(level): {int(start): int(offset) for start, offset in starts.items()}
                for level, starts in segments.items()
            },
        )
    except (AttributeError, TypeError, ValueError) as error:
        raise BodyError(f"{FILE_NAME}: {error}") from error


class ProgressFile:
    """Reads and replaces `delayOffset.json`; the previous file is kept as `.bak`, as RocketMQ does.

    Unlike the other files of the store it is not flushed: it is written every second while messages are delivered, on
    the event loop, and an older one only costs reading more of the log.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._files = FileLayer()

    def __str__(self) -> str:
        return str(self._path)

    def read(self) -> DelayProgress | None:
        """Returns the content of the file, or of its backup; None when neither can be read."""
        for path in (self._path, backup_of(self._path)):
            try:
                return decode_progress(path.read_bytes())
            except FileNotFoundError:
                continue
            except BodyError as error:
                logger.error("%s cannot be read: %s", path, error)
        return None

    def write(self, progress: DelayProgress) -> None:
        """Replaces the file. Raises OSError; the previous file is still there then."""
        self._files.replace(self._path, encode_progress(progress), Backup.PREVIOUS, flushes=False)
