"""Properties of a queue's records, one after the other, for filters that look at every message.

A filter reads much more than it lets through, so records that lie near each other are read in one go: each read is
twice as long as the last one, up to `_WINDOW_BYTES_MAX`, while they do. Good for one reading on the event loop: what
is appended later is not in the window.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from broker.engine.store.commit_log import CommitLog
from broker.engine.store.layout import RECORD_BYTES_MIN
from remoting.wire.errors import BodyError
from remoting.wire.properties_text import TEXT_START
from remoting.wire.stored_message import MAGIC_V1, MAGIC_V2
from remoting.wire.stored_properties import IP_V6_FLAGS, properties_text

# Cheap to read from the page cache, and some 80 messages of 400 bytes.
_WINDOW_BYTES_MAX = 32 * 1024
# So much of other queues' records between two of this one is read along.
_GAP_BYTES_MAX = 4096
# A larger record is not read whole for its properties.
_RECORD_BYTES_MAX = 4096
# The start of a record whose hosts are IPv4: size, magic, …, commit-log offset, sys flag, …, bytes of the body.
_HEAD = struct.Struct(">iI20xqi44xi")

# Both as in `properties_text.py`; None of a record that is not there.
PropertiesAt = Callable[[int, int], bytes | None]
PropertiesMatch = Callable[[bytes], bool]


class RecordWindow:
    """`properties_of_large`: what answers for records that no window takes."""

    def __init__(self, log: CommitLog, properties_of_large: PropertiesAt) -> None:
        self._log = log
        self._of_large = properties_of_large
        self._start = self._end = 0
        self._content = b""

    def properties_at(self, commit_log_offset: int, size: int) -> bytes | None:
        """Of the record of `size` bytes there; None when the log has none such. Raises OSError.

        The usual record's are found here, without a call: a filter asks this of every message.
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
        """Whether the window now holds this record."""
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
