"""Replication of a broker (907, HARuntimeInfo)."""

from __future__ import annotations

import msgspec

from remoting.wire.bodies.document import Document


class HAClientRuntimeInfo(Document, kw_only=True):
    """A replica's own figures; all 0 on a master."""

    last_read_timestamp: int = 0
    last_write_timestamp: int = 0
    master_flush_offset: int = 0
    max_offset: int = 0
    transferred_byte_in_second: int = 0


class HARuntimeInfo(Document, kw_only=True):
    """Offsets are commit-log offsets. `ha_connection_info` has an entry per connected replica."""

    ha_client_runtime_info: HAClientRuntimeInfo = msgspec.field(default_factory=HAClientRuntimeInfo)
    ha_connection_info: list[dict[str, str | int | bool]] = []  # noqa: RUF012 - msgspec copies a default per instance
    in_sync_slave_nums: int = 0
    master: bool = True
    master_commit_log_max_offset: int = 0
