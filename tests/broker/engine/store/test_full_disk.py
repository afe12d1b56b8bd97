"""No space is a clear refusal: nothing half stored, everything before still readable, and it goes on with space."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from broker.engine.store.errors import StoreFailed, StoreFull
from tests.support.faulty_files import FaultyFiles
from tests.support.stores import abandon, bodies, draft, open_store


@pytest.fixture
def files() -> FaultyFiles:
    return FaultyFiles()


def test_no_space_for_the_next_segment(tmp_path: Path, files: FaultyFiles) -> None:
    store = open_store(tmp_path, files=files)
    store.append(draft(bytes(9000)))
    files.is_full = True
    with pytest.raises(StoreFull, match="no space for another segment of 16384 bytes"):
        store.append(draft(bytes(9000)))
    assert len(list((tmp_path / "commitlog").iterdir())) == 1
    assert len(bodies(store)) == 1
    store.append(draft(b"small ones still fit"))
    files.is_full = False
    store.append(draft(bytes(9000)))
    assert len(bodies(store)) == 3
    assert store.verify().is_sound
    store.close()


def test_no_space_for_the_queue_of_a_new_topic(tmp_path: Path, files: FaultyFiles) -> None:
    store = open_store(tmp_path, files=files)
    store.append(draft())
    files.is_full = True
    with pytest.raises(StoreFull, match="no space for the indexes"):
        store.append(draft(topic="new"))
    with pytest.raises(StoreFull):
        store.append_batch([draft(), draft(topic="new")])
    assert store.max_offset("orders", 0) == 1
    files.is_full = False
    assert store.append(draft(topic="new")).queue_offset == 0
    assert store.verify().is_sound
    store.close()


def test_no_space_for_the_key_index(tmp_path: Path, files: FaultyFiles) -> None:
    store = open_store(tmp_path, files=files)
    store.append(draft())
    files.is_full = True
    with pytest.raises(StoreFull, match="no space for the indexes"):
        store.append(draft(keys="k"))
    store.append(draft(b"without keys"))
    store.close()


@pytest.mark.parametrize("batch_size", [1, 4])
def test_a_write_cut_off_by_a_full_disk_leaves_no_trace(tmp_path: Path, files: FaultyFiles, batch_size: int) -> None:
    store = open_store(tmp_path, files=files)
    size = store.append(draft(b"first" * 20)).total_bytes
    end = store.max_commit_log_offset
    files.write_error, files.write_bytes = errno.ENOSPC, size * batch_size - size // 2
    with pytest.raises(StoreFull, match="no space to write"):
        store.append_batch([draft(b"never" * 20) for _ in range(batch_size)])
    assert store.max_commit_log_offset == end
    segment = (tmp_path / "commitlog" / "00000000000000000000").read_bytes()
    assert not segment[end:].strip(b"\0")
    abandon(store)
    again = open_store(tmp_path)
    assert bodies(again) == [b"first" * 20]
    assert again.recovery.torn is None
    again.close()


def test_a_write_error_that_is_not_about_space_stops_the_store(tmp_path: Path, files: FaultyFiles) -> None:
    store = open_store(tmp_path, files=files)
    store.append(draft(b"first"))
    files.write_error = errno.EIO
    with pytest.raises(StoreFailed, match=r"writing to .* failed"):
        store.append(draft())
    with pytest.raises(StoreFailed):
        store.append(draft())
    assert bodies(store) == [b"first"]
    store.close()


def test_opening_on_a_full_disk_says_so_and_lets_go(tmp_path: Path, files: FaultyFiles) -> None:
    files.is_full = True
    with pytest.raises(StoreFull, match="no space to open the store"):
        open_store(tmp_path, files=files)
    open_store(tmp_path).close()


def test_a_segment_that_a_full_disk_left_empty_does_no_harm(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.append(draft(b"first"))
    abandon(store)
    (tmp_path / "commitlog" / "00000000000000016384").write_bytes(b"")
    again = open_store(tmp_path)
    again.append(draft(bytes(16_000)))
    assert bodies(again) == [b"first", bytes(16_000)]
    again.close()


LIMITED = """
import resource, signal, sys
from pathlib import Path
from broker.engine.store.errors import StoreFull
from tests.support.stores import SMALL, draft, open_store
from dataclasses import replace
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
store = open_store(Path(sys.argv[1]), replace(SMALL, segment_bytes=512 * 1024, queue_file_entries=300_000))
"""


@pytest.mark.slow
def test_a_file_size_limit_is_a_clear_refusal_too(tmp_path: Path) -> None:
    script = LIMITED + "try:\n    store.append(draft())\nexcept StoreFull as error:\n    sys.exit(f'refused: {error}')"
    ended = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, timeout=120)
    assert ended.stderr.startswith("refused: no space for the indexes"), ended.stderr
