"""How groups get their messages: `config/messageRequestMode.json` (RocketMQ's `MessageRequestModeManager`).

This broker has one mode, PULL, so that the table only repeats what tools wrote into it.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from broker.engine.config_files import load_config_file, save_config_file
from remoting.complaints import ComplaintLog
from remoting.wire.bodies.assignment import RequestMode, RequestModeTable

FILE_NAME = "messageRequestMode.json"


class RequestModes:
    """Keeps the modes by topic and group."""

    def __init__(self, folder: Path, complaints: ComplaintLog) -> None:
        self._path = folder / FILE_NAME
        self._complaints = complaints
        self._table = RequestModeTable()

    def load(self) -> None:
        """Raises ConfigFileUnreadable."""
        self._table = load_config_file(self._path, RequestModeTable) or RequestModeTable()

    @property
    def table(self) -> RequestModeTable:
        return self._table

    def put(self, mode: RequestMode) -> None:
        """Keeps the mode: on disk first. Raises ConfigFileUnwritable."""
        modes = self._table.message_request_mode_map
        groups = modes.get(mode.topic, {}) | {mode.consumer_group: mode}
        table = msgspec.structs.replace(self._table, message_request_mode_map=modes | {mode.topic: groups})
        save_config_file(self._path, table, self._complaints)
        self._table = table
