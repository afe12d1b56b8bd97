"""Finding messages by key: chains, files, and the index after a kill."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.engine.store.errors import IndexesStale
from broker.engine.store.files import FileLayer
from broker.engine.store.key_index import KeyIndex, message_keys
from broker.engine.store.layout import hash_topic
from broker.engine.store.mapped_files import MappedFiles
from broker.engine.store.values import KEYS_PER_MESSAGE_MAX

ALWAYS = (0, 1 << 60)


@pytest.fixture
def mapped():
    files = MappedFiles(FileLayer(), limit=3)
    yield files
    files.close_all()


def make(folder: Path, mapped: MappedFiles) -> KeyIndex:
    return KeyIndex(folder, mapped, slot_count=7, entries_per_file=20)


def fill(index: KeyIndex, count: int, start: int = 0) -> None:
    for number in range(start, start + count):
        index.reserve(2, number * 100)
        index.put(hash_topic("t"), [f"k{number}", "all"], number * 100, number)


def test_keys_are_found_newest_first_across_files(tmp_path: Path, mapped: MappedFiles) -> None:
    index = make(tmp_path / "keys", mapped)
    fill(index, 95)
    assert list(index.find("t", "all", *ALWAYS)) == [number * 100 for number in reversed(range(95))]
    assert all(number * 100 in index.find("t", f"k{number}", *ALWAYS) for number in range(95))
    assert list(index.find("other", "all", *ALWAYS)) == []
    assert list(index.find("t", "k95", *ALWAYS)) == []


def test_files_out_of_the_time_are_not_looked_at(tmp_path: Path, mapped: MappedFiles) -> None:
    index = make(tmp_path / "keys", mapped)
    fill(index, 40)
    assert list(index.find("t", "all", 12, 14)) == [number * 100 for number in reversed(range(10, 20))]


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("count", [0, 1, 10, 11, 33])
def test_the_index_comes_back(tmp_path: Path, mapped: MappedFiles, count: int, is_clean: bool) -> None:
    index = make(tmp_path / "keys", mapped)
    fill(index, count)
    index.changed_files()
    again = make(tmp_path / "keys", mapped)
    again.load(index.position, is_clean=is_clean)
    assert list(again.find("t", "all", *ALWAYS)) == list(index.find("t", "all", *ALWAYS))
    fill(again, 5, start=count)
    assert len(list(again.find("t", "all", *ALWAYS))) == count + 5


@pytest.mark.parametrize("kept", [0, 1, 9, 10, 11, 25])
def test_what_came_after_the_checkpoint_is_cut_off(tmp_path: Path, mapped: MappedFiles, kept: int) -> None:
    index = make(tmp_path / "keys", mapped)
    fill(index, kept)
    index.changed_files()
    position = index.position
    fill(index, 26, start=kept)
    again = make(tmp_path / "keys", mapped)
    again.load(position, is_clean=False)
    assert list(again.find("t", "all", *ALWAYS)) == [number * 100 for number in reversed(range(kept))]
    assert again.position == position
    fill(again, 3, start=kept)
    assert len(list(again.find("t", "all", *ALWAYS))) == kept + 3


def test_an_index_that_lacks_entries_is_stale(tmp_path: Path, mapped: MappedFiles) -> None:
    index = make(tmp_path / "keys", mapped)
    fill(index, 5)
    index.changed_files()
    with pytest.raises(IndexesStale, match="lacks entries"):
        make(tmp_path / "keys", mapped).load((0, 12), is_clean=False)
    with pytest.raises(IndexesStale, match="lacks entries"):
        make(tmp_path / "nothing", mapped).load((0, 10), is_clean=True)


def test_a_damaged_chain_does_not_loop(tmp_path: Path, mapped: MappedFiles) -> None:
    index = make(tmp_path / "keys", mapped)
    fill(index, 10)
    path = next((tmp_path / "keys").iterdir())
    with path.open("r+b") as file:
        for number in range(20):
            file.seek(64 + 7 * 4 + number * 16 + 12)
            file.write(b"\x00\x00\x00\x14")
    assert len(list(index.find("t", "all", *ALWAYS))) <= 20


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        pytest.param("", [], id="none"),
        pytest.param("KEYS\x01a  b\x02UNIQ_KEY\x01U\x02", ["U", "a", "b"], id="both"),
        pytest.param("UNIQ_KEY\x01U", ["U"], id="no-last-separator"),
        pytest.param("XKEYS\x01x\x02KEYS\x01a\x02", ["a"], id="a-longer-name-first"),
        pytest.param("n\x01KEYS\x01x\x02", [], id="within-a-value"),
        pytest.param("KEYS\x01\x02", [], id="empty"),
    ],
)
def test_keys_of_a_message(text: str, keys: list[str]) -> None:
    assert message_keys(text) == keys


def test_a_message_with_very_many_keys_is_indexed_by_the_first_ones() -> None:
    words = [f"w{number}" for number in range(5000)]
    assert message_keys("UNIQ_KEY\x01U\x02KEYS\x01" + " ".join(words)) == ["U", *words[: KEYS_PER_MESSAGE_MAX - 1]]
