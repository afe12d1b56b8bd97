"""Facts on disk: replaced as a whole, the one before kept."""

from __future__ import annotations

import msgspec

from broker.engine.config_files import load_json, save_json


class Facts(msgspec.Struct):
    number: int


def test_a_save_replaces_the_file_and_keeps_the_one_before(tmp_path) -> None:
    path = tmp_path / "config" / "facts.json"
    for number in (1, 2, 3):
        save_json(path, b'{"number":%d}' % number)
    assert load_json(path, Facts) == Facts(3)
    assert (tmp_path / "config" / "facts.json.bak").read_bytes() == b'{"number":2}'
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["facts.json", "facts.json.bak"]


def test_a_missing_file_is_nothing(tmp_path) -> None:
    assert load_json(tmp_path / "facts.json", Facts) is None


def test_a_backup_alone_is_taken(tmp_path) -> None:
    (tmp_path / "facts.json.bak").write_bytes(b'{"number":1}')
    assert load_json(tmp_path / "facts.json", Facts) == Facts(1)
