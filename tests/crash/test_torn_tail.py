"""The last write cut at every byte, and every bit of it flipped.

Must survive: all records before the last. Must never appear: a part of the last one, or old bytes behind the end.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.engine.store.values import Appended
from tests.support.stores import abandon, bodies, draft, open_store

pytestmark = pytest.mark.crash

KEPT = [b"first", b"second" * 20]
LAST = b"the last one" * 3


def cut_off(path: Path, position: int) -> None:
    os.truncate(path, position)


def zero_behind(path: Path, position: int) -> None:
    size = path.stat().st_size
    os.truncate(path, position)
    os.truncate(path, size)


def garbage_behind(path: Path, position: int) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        file.write(random.Random(position).randbytes(1000))


class Original:
    """A store as it was abandoned. It is laid out anew in the same folder: making and removing folders takes long."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        store = open_store(folder)
        for body in KEPT:
            store.append(draft(body, keys="k"))
        self.last: Appended = store.append(draft(LAST, keys="k"))
        abandon(store)
        self._contents = {path: path.read_bytes() for path in self._files()}

    def harmed(self, harm: Callable[[Path, int], None], position: int) -> Path:
        """Returns the folder with the store as it was, but for the harm at `position` of its log."""
        for path in self._files():
            if path not in self._contents:
                path.unlink()
        for path, content in self._contents.items():
            path.write_bytes(content)
        harm(self._folder / "commitlog" / "00000000000000000000", position)
        return self._folder

    def _files(self) -> list[Path]:
        return [path for path in self._folder.rglob("*") if path.is_file()]


@pytest.fixture
def original(tmp_path: Path) -> Original:
    return Original(tmp_path / "store")


def check(folder: Path) -> None:
    store = open_store(folder)
    assert bodies(store) == KEPT
    assert store.verify().is_sound
    assert len(store.query_by_key("orders", "k", 9, 0, 1 << 60)) == 2
    # Shorter than what lay there: nothing of the old bytes may come to light behind it.
    assert store.append(draft(b"x")).queue_offset == 2
    abandon(store)
    again = open_store(folder)
    assert bodies(again) == [*KEPT, b"x"]
    assert again.recovery.torn is None
    again.close()


@pytest.mark.parametrize("harm", [cut_off, zero_behind, garbage_behind])
def test_the_last_record_cut_at_every_byte(original: Original, harm: Callable[[Path, int], None]) -> None:
    last = original.last
    step = 1 if os.environ.get("TORTURE") else 3
    # The very last bytes too: a record that lacks one byte is no record.
    cuts = sorted({*range(0, last.total_bytes, step), *range(last.total_bytes - 25, last.total_bytes)})
    for cut in cuts:
        check(original.harmed(harm, last.commit_log_offset + cut))


@pytest.mark.parametrize("harm", [zero_behind, garbage_behind])
def test_a_whole_last_record_stays(original: Original, harm: Callable[[Path, int], None]) -> None:
    store = open_store(original.harmed(harm, original.last.commit_log_offset + original.last.total_bytes))
    assert bodies(store) == [*KEPT, LAST]
    assert (store.recovery.torn is not None) == (harm is garbage_behind)
    store.close()


def test_every_flipped_bit_of_the_last_record_is_found(original: Original) -> None:
    last = original.last
    bits = range(8) if os.environ.get("TORTURE") else None
    for byte in range(last.total_bytes):
        for bit in bits or [random.Random(byte).randrange(8)]:

            def flip(path: Path, position: int, bit: int = bit) -> None:
                with path.open("r+b") as file:
                    file.seek(position)
                    (old,) = file.read(1)
                    file.seek(position)
                    file.write(bytes([old ^ 1 << bit]))

            folder = original.harmed(flip, last.commit_log_offset + byte)
            store = open_store(folder)
            assert bodies(store) == KEPT, f"byte {byte} bit {bit}"
            assert store.recovery.torn is not None
            kept_as = store.recovery.torn.kept_as
            assert kept_as is not None
            assert (folder / "quarantine" / kept_as).stat().st_size == last.total_bytes
            store.close()


def test_a_batch_cut_within_keeps_only_whole_records(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store")
    appended = store.append_batch([draft(b"b%d" % number) for number in range(4)])
    abandon(store)
    os.truncate(tmp_path / "store" / "commitlog" / "00000000000000000000", appended[2].commit_log_offset + 50)
    again = open_store(tmp_path / "store")
    assert bodies(again) == [b"b0", b"b1"]
    again.close()
