"""Reads ahead in the log for filters that need the properties of every message of a queue.

A filter reads many more records than it passes on, so records that are near each other are read with one call: while
they are, each read is twice as long as the one before, up to `_WINDOW_BYTES_MAX`. A window serves one scan on the event
loop: records appended later are not in it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from broker.engine.store.commit_log import CommitLog
from broker.engine.store.layout import RECORD_BYTES_MIN
from remoting.wire.errors import BodyError
from remoting.wire.property_lookup import TEXT_START
from remoting.wire.stored_message import MAGIC_V1, MAGIC_V2
from remoting.wire.stored_properties import IP_V6_FLAGS, properties_text

# Cheap to read from the page cache, and some 80 messages of 400 bytes.
_WINDOW_BYTES_MAX = 32 * 1024
# Two records of the queue are near each other with at most so many bytes of other queues' records between them.
_GAP_BYTES_MAX = 4096
# The properties of a larger record are read without its body (`Reader.properties_at`).
_RECORD_BYTES_MAX = 4096
# The start of a record whose hosts are IPv4: size, magic, …, commit-log offset, sys flag, …, bytes of the body.
_HEAD = struct.Struct(">iI20xqi44xi")

# Properties are encoded as in `property_lookup.py`; None stands for a record that the log does not have.
PropertiesAt = Callable[[int, int], bytes | None]
PropertiesMatch = Callable[[bytes], bool]


class RecordWindow:
    """A part of the log, read ahead. `properties_of_large` reads the properties of records too large for it."""

    def __init__(self, log: CommitLog, properties_of_large: PropertiesAt) -> None:
        self._log = log
        self._of_large = properties_of_large
        self._start = self._end = 0
        self._content = b""

    def properties_at(self, commit_log_offset: int, size: int) -> bytes | None:
        """Returns the properties of a record of `size` bytes; None when the log has no such record. Raises OSError.

        Called for every message that a filter scans: those of the usual record are cut out without a further call.
        """
        if not RECORD_BYTES_MIN <= size <= _RECORD_BYTES_MAX:
            return self._of_large(commit_log_offset, size)
        end = commit_log_offset + size
        if (commit_log_offset < self._start or end > self._end) and not self._fill(commit_log_offset, size):
            return None
        content, position = self._content, commit_log_offset - self._start
        total, magic, own_offset, sys_flag, body_bytes = _HEAD.unpack_from(content, position)
        if total != size or own_offset != commit_log_offset or magic not in (MAGIC_V1, MAGIC_V2):
            return None
        if sys_flag & IP_V6_FLAGS or body_bytes < 0:
            return self._of_large(commit_log_offset, size)
        tail_at, end = position + _HEAD.size + body_bytes, position + size
        if magic == MAGIC_V1 and tail_at < end:
            start = tail_at + 3 + content[tail_at]
            if start <= end and content[start - 2] << 8 | content[start - 1] == end - start:
                return TEXT_START + content[start:end]
        try:
            return properties_text(content, tail_at, end, magic)
        except BodyError:
            return None

    def _fill(self, commit_log_offset: int, size: int) -> bool:
        """Reads a window that begins with the record. Returns whether the log has all of it. Raises OSError."""
        segment = self._log.segment_of(commit_log_offset)
        if segment is None:
            return False
        is_near = 0 <= commit_log_offset - (self._start + len(self._content)) <= _GAP_BYTES_MAX or (
            self._start <= commit_log_offset < self._start + len(self._content)
        )
        ahead = min(2 * len(self._content), _WINDOW_BYTES_MAX) if is_near else 0
        self._start = commit_log_offset
        self._content = self._log.read(segment, commit_log_offset, max(size, ahead))
        self._end = commit_log_offset + len(self._content)
        return len(self._content) >= size
