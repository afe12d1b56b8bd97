"""What the last cycle has written of each group: so that the next one reads only what may have changed. Pure.

Per group its key (another one when a figure of it changed), per topic a digest of what was packed. One value per
cluster, compressed; 10,000 groups take about 200 KB. Little-endian, the columns of all groups and topics one after the
other:

    | 4: groups, G | 4: topics, T | G × 8: group | G × 4: key | G × 2: topics | T × 4: name's digest | T × 4: digest |
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

# Of one group: more do not fit the field.
TOPICS_MAX = 65_535
_COUNTS = struct.Struct("<II")


@dataclass(frozen=True, slots=True)
class WrittenGroup:
    """`digests`: digest of the topic's name → digest of what was written."""

    key: int
    digests: Mapping[int, int] = field(default_factory=dict)


def digest(content: bytes) -> int:
    return zlib.crc32(content)


def pack(written: Mapping[int, WrittenGroup]) -> bytes:
    """Packs what was written, by the group's primary key."""
    topics = [pair for group in written.values() for pair in group.digests.items()]
    counts = [len(group.digests) for group in written.values()]
    raw = (
        _COUNTS.pack(len(written), len(topics))
        + struct.pack(f"<{len(written)}q", *written)
        + struct.pack(f"<{len(written)}I", *(group.key for group in written.values()))
        + struct.pack(f"<{len(written)}H", *counts)
        + struct.pack(f"<{len(topics)}I", *(name for name, _ in topics))
        + struct.pack(f"<{len(topics)}I", *(content for _, content in topics))
    )
    return zlib.compress(raw, 1)


def unpack(packed: bytes | memoryview) -> dict[int, WrittenGroup]:
    """Returns what was written; nothing where that is not known."""
    if not packed:
        return {}
    raw = zlib.decompress(packed)
    group_count, topic_count = _COUNTS.unpack_from(raw)
    layout = f"<{group_count}q{group_count}I{group_count}H{topic_count}I{topic_count}I"
    values = struct.unpack_from(layout, raw, _COUNTS.size)
    pks, keys, counts = (values[n * group_count : (n + 1) * group_count] for n in range(3))
    first = 3 * group_count
    names, digests = values[first : first + topic_count], values[first + topic_count :]
    written, at = {}, 0
    for pk, key, count in zip(pks, keys, counts, strict=True):
        of_group = zip(names[at : at + count], digests[at : at + count], strict=True)
        written[pk] = WrittenGroup(key, dict(of_group))
        at += count
    return written
