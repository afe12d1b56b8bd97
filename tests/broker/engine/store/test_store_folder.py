"""One owner, one version, sizes that stay."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from broker.engine.store.errors import StoreError, StoreLocked, StoreVersionError
from broker.engine.store.message_store import MessageStore
from broker.engine.store.values import StoreConfig
from tests.support.stores import SMALL, draft, open_store

OPEN_IN_ANOTHER_PROCESS = """
import sys
from pathlib import Path
from broker.engine.store.errors import StoreLocked
from broker.engine.store.message_store import MessageStore
try:
    MessageStore.open(Path(sys.argv[1]))
except StoreLocked as error:
    sys.exit(f"refused: {error}")
"""


def test_a_second_process_is_told_who_has_the_store(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    asked = [sys.executable, "-c", OPEN_IN_ANOTHER_PROCESS, str(tmp_path)]
    other = subprocess.run(asked, capture_output=True, text=True, timeout=120)
    store.close()
    assert other.returncode == 1
    assert f"refused: the store {tmp_path} is open in another process (pid {os.getpid()})" in other.stderr


def test_the_store_can_be_opened_once_it_was_closed(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    with pytest.raises(StoreLocked):
        open_store(tmp_path)
    store.close()
    open_store(tmp_path).close()


def test_the_recorded_sizes_win(tmp_path: Path) -> None:
    open_store(tmp_path).close()
    store = open_store(tmp_path, StoreConfig(segment_bytes=1 << 20))
    store.append(draft())
    store.close()
    assert (tmp_path / "commitlog" / "00000000000000000000").stat().st_size == SMALL.segment_bytes


def test_a_store_of_another_version_is_refused_by_name(tmp_path: Path) -> None:
    open_store(tmp_path).close()
    meta = json.loads((tmp_path / "store.json").read_text())
    (tmp_path / "store.json").write_text(json.dumps(meta | {"format": 2}))
    with pytest.raises(StoreVersionError, match="store of version 2; this broker reads version 1"):
        open_store(tmp_path)


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"format": 1, "segment_bytes": "much"}'])
def test_a_description_that_cannot_be_read_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "store.json").write_text(content)
    with pytest.raises(StoreVersionError, match=r"store\.json (is not a store's description|cannot be read)"):
        open_store(tmp_path)


def test_a_commit_log_of_apache_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "commitlog" / "00000000000000000000").write_bytes(b"x" * 100)
    with pytest.raises(StoreVersionError, match="no store of ours"):
        open_store(tmp_path)
    assert (tmp_path / "commitlog" / "00000000000000000000").read_bytes() == b"x" * 100


def test_a_foreign_file_among_the_segments_is_refused(tmp_path: Path) -> None:
    open_store(tmp_path).close()
    (tmp_path / "commitlog" / "00000000000000000077").write_bytes(b"")
    with pytest.raises(StoreError, match="is no segment of 16384 bytes"):
        open_store(tmp_path)


@pytest.mark.parametrize("segment_bytes", [100, 1 << 31])
def test_a_segment_size_out_of_range_is_refused(tmp_path: Path, segment_bytes: int) -> None:
    with pytest.raises(StoreError, match="is not within"):
        MessageStore.open(tmp_path, StoreConfig(segment_bytes=segment_bytes))


def test_a_folder_that_is_a_file_is_refused_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"file cannot be written .*--store"):
        open_store(tmp_path / "file")


def test_abort_lies_there_while_the_store_is_open(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    assert (tmp_path / "abort").read_text() == f"{os.getpid()}\n"
    store.close()
    assert not (tmp_path / "abort").exists()
