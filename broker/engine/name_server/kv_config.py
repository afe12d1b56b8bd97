"""Values that tools keep in the name server: `config/kvConfig.json` (RocketMQ's `KVConfigManager`)."""

from __future__ import annotations

from pathlib import Path

import msgspec

from broker.engine.config_files import load_config_file, save_config_file
from remoting.complaints import ComplaintLog
from remoting.wire.bodies.kv_config import KVConfigFile
from remoting.wire.codes import ResponseCode
from remoting.wire.errors import MessageError

FILE_NAME = "kvConfig.json"
# Every change writes the whole file: it holds settings, and is no database.
ENTRIES_MAX = 10_000
VALUE_CHARS_MAX = 64 * 1024


class KVConfig:
    """Keeps text values by namespace and key."""

    def __init__(self, folder: Path, complaints: ComplaintLog) -> None:
        self._path = folder / FILE_NAME
        self._complaints = complaints
        self._file = KVConfigFile()

    def load(self) -> None:
        """Raises ConfigFileUnreadable."""
        self._file = load_config_file(self._path, KVConfigFile) or KVConfigFile()

    def get(self, namespace: str, key: str) -> str | None:
        return self._file.config_table.get(namespace, {}).get(key)

    def table(self, namespace: str) -> dict[str, str] | None:
        """Returns None for a namespace without any value ever."""
        return self._file.config_table.get(namespace)

    def put(self, namespace: str, key: str, value: str) -> None:
        """Keeps the value: on disk first. Raises MessageError."""
        tables = self._file.config_table
        if len(value) + len(key) + len(namespace) > VALUE_CHARS_MAX:
            raise MessageError(f"a value may have {VALUE_CHARS_MAX} characters", ResponseCode.INVALID_PARAMETER)
        if self.get(namespace, key) is None and sum(map(len, tables.values())) >= ENTRIES_MAX:
            raise MessageError(
                f"{ENTRIES_MAX} values are kept already; delete some first", ResponseCode.INVALID_PARAMETER
            )
        self._save(namespace, tables.get(namespace, {}) | {key: value})

    def delete(self, namespace: str, key: str) -> None:
        """Deletes the value, if there is one. Raises ConfigFileUnwritable."""
        table = dict(self._file.config_table.get(namespace, {}))
        if table.pop(key, None) is not None:
            self._save(namespace, table)

    def _save(self, namespace: str, table: dict[str, str]) -> None:
        file = msgspec.structs.replace(self._file, config_table=self._file.config_table | {namespace: table})
        save_config_file(self._path, file, self._complaints)
        self._file = file
