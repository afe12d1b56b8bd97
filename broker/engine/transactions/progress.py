"""The progress of transactions: two committed offsets, as RocketMQ keeps them, and a commit-log offset.

The offsets are committed for the group CID_RMQ_SYS_TRANS, in queue 0 of the half topic and of the op topic: all halves
before the first have ended, and op messages before the second name only such halves. RocketMQ continues from the same
two.

    config/transactionProgress.json     {"scanFrom": 1234, "halfOffset": 17, "opOffset": 4}

`scanFrom`, ours alone: the commit-log offset from which on records may stand that end a half without an op message. The
two offsets are in the file too, because any client can commit for any group: the smaller one counts. A file that is
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
    """The queue offsets of the first half and of the first op message that are still needed.

    `scan_from` is a commit-log offset.
    """

    half_offset: int
    op_offset: int
    scan_from: int


class _File(msgspec.Struct, rename="camel"):
    """The content of the file. A file of an older broker has no offsets."""

    scan_from: int = 0
    half_offset: int = sys.maxsize
    op_offset: int = sys.maxsize


class ProgressKeeper:
    """Reads and writes the progress: the committed offsets, and the file.

    Unlike the other files of the store this one is not flushed: it is written often, on the event loop.
    """

    def __init__(self, folder: Path, offsets: Offsets) -> None:
        self._path = folder / FILE_NAME
        self._offsets = offsets
        self._saved: Progress | None = None

    def read(self) -> Progress:
        """Returns the progress that was written last; 0 for what was never written."""
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
            logger.warning("%s cannot be read, more of the log is read instead: %s", self._path, error)
            return _File()

    def write(self, progress: Progress) -> None:
        """Commits the two offsets, and replaces the file when it differs. Raises OSError."""
        self._offsets.commit(GROUP, HALF_TOPIC, HALF_QUEUE, progress.half_offset)
        self._offsets.commit(GROUP, OP_HALF_TOPIC, HALF_QUEUE, progress.op_offset)
        if progress == self._saved:
            return
        content = msgspec.json.encode(_File(progress.scan_from, progress.half_offset, progress.op_offset))
        FileLayer().replace(self._path, content, Backup.NONE, flushes=False)
        self._saved = progress
