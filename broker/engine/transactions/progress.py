"""How far all halves are settled: two committed offsets, as RocketMQ keeps them, and a place in the log.

Group CID_RMQ_SYS_TRANS, queue 0 of the half topic and of the op topic: halves before the one are settled, op records
before the other speak only of such halves. RocketMQ goes on from the same two.

    config/transactionProgress.json     {"scanFrom": 1234, "halfOffset": 17, "opOffset": 4}

`scanFrom`, ours alone: the commit-log offset from which on records may stand that end a half while no op record says
so. The two offsets are there again, because any client can commit for any group: the smaller counts. A file that is
old, or missing, only costs reading more of the log.
"""

from __future__ import annotations

import logging
import sys
from dataclasses import dataclass
from pathlib import Path

import msgspec

from broker.engine.groups.offsets import Offsets
from broker.engine.store.files import Backup, FileLayer
from broker.engine.transactions.half import HALF_QUEUE
from remoting.wire.names import HALF_TOPIC, OP_HALF_TOPIC

logger = logging.getLogger(__name__)

GROUP = "CID_RMQ_SYS_TRANS"
FILE_NAME = "transactionProgress.json"


@dataclass(frozen=True, slots=True)
class Progress:
    """Queue offsets of the first half and the first op record that still matter; a commit-log offset."""

    half_offset: int
    op_offset: int
    scan_from: int


class _File(msgspec.Struct, rename="camel"):
    """The offsets are missing where an older broker wrote it."""

    scan_from: int = 0
    half_offset: int = sys.maxsize
    op_offset: int = sys.maxsize


class ProgressKeeper:
    """Unlike the other files of the store this one is not flushed: it is written often, on the event loop."""

    def __init__(self, folder: Path, offsets: Offsets) -> None:
        self._path = folder / FILE_NAME
        self._offsets = offsets
        self._saved: Progress | None = None

    def read(self) -> Progress:
        """All 0 where nothing is known."""
        half = self._offsets.committed(GROUP, HALF_TOPIC, HALF_QUEUE) or 0
        op = self._offsets.committed(GROUP, OP_HALF_TOPIC, HALF_QUEUE) or 0
        file = self._read_file()
        return Progress(min(half, file.half_offset), min(op, file.op_offset), max(0, file.scan_from))

    def _read_file(self) -> _File:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=_File)
        except FileNotFoundError:
            return _File()
        except (OSError, msgspec.DecodeError) as error:
            logger.warning("%s cannot be read, the log tells the same: %s", self._path, error)
            return _File()

    def write(self, progress: Progress) -> None:
        """Raises OSError."""
        self._offsets.commit(GROUP, HALF_TOPIC, HALF_QUEUE, progress.half_offset)
        self._offsets.commit(GROUP, OP_HALF_TOPIC, HALF_QUEUE, progress.op_offset)
        if progress == self._saved:
            return
        content = msgspec.json.encode(_File(progress.scan_from, progress.half_offset, progress.op_offset))
        FileLayer().replace(self._path, content, Backup.NONE, flushes=False)
        self._saved = progress
