"""`manage.py store check` and `show`: what they print, and when they say no."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from tests.support.stores import SMALL, abandon, draft, open_store


def run(*arguments: str | Path) -> tuple[int, list[str]]:
    """(exit code, lines)."""
    out = StringIO()
    try:
        call_command("store", *map(str, arguments), stdout=out)
    except SystemExit as end:
        return int(end.code or 0), out.getvalue().splitlines()
    return 0, out.getvalue().splitlines()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    store = open_store(tmp_path / "store")
    for number in range(5):
        store.append(draft(b"body-%d" % number, "orders", number % 2, tags="paid", keys=f"k{number}"))
    store.append(draft(b"paid", "payments"))
    store.close()
    return tmp_path / "store"


def test_a_sound_store_is_called_sound(folder: Path) -> None:
    code, lines = run("check", folder)
    assert code == 0
    assert lines[0] == f"{folder}: closed cleanly before"
    assert lines[1].startswith("6 records, ")
    assert lines[-1] == "the store is sound"


def test_a_flipped_bit_is_named_with_its_place_and_the_exit_code_is_1(folder: Path) -> None:
    segment = folder / "commitlog" / ("0" * 20)
    content = bytearray(segment.read_bytes())
    content[content.index(b"body-3")] ^= 1
    segment.write_bytes(content)
    code, lines = run("check", folder)
    assert code == 1
    assert any(line.startswith("damaged: ") for line in lines)
    assert lines[-1] == "the store is NOT sound"


def test_a_store_that_was_killed_is_recovered_and_verified(folder: Path) -> None:
    store = open_store(folder)
    store.append(draft(b"last"))
    abandon(store)
    code, lines = run("check", folder)
    assert code == 0
    assert "recovered after an abrupt end" in lines[0]
    assert lines[1].startswith("7 records, ")


def test_show_lists_topics_queues_and_offsets(folder: Path) -> None:
    code, lines = run("show", folder)
    assert code == 0
    assert lines[0].endswith(" bytes of commit log, 2 topics")
    assert lines[1:] == [
        "orders",
        "   queue    0: offsets 0 to 3, 3 messages",
        "   queue    1: offsets 0 to 2, 2 messages",
        "payments",
        "   queue    0: offsets 0 to 1, 1 messages",
    ]


def test_a_store_that_is_open_is_refused(folder: Path) -> None:
    store = open_store(folder, SMALL)
    try:
        with pytest.raises(CommandError, match="is open in another process"):
            run("check", folder)
    finally:
        store.close()


def test_a_folder_without_a_store_is_refused_and_none_is_made(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"there is no store in .*: give the folder that holds store\.json"):
        run("check", tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()
