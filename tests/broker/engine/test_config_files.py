"""Config files: replaced as a whole, the content before kept as a backup."""

from __future__ import annotations

import msgspec

from broker.engine.config_files import load_config_file, replace_file


class Counter(msgspec.Struct):
    number: int


def test_a_save_replaces_the_file_and_keeps_the_one_before(tmp_path) -> None:
    path = tmp_path / "config" / "counter.json"
    for number in (1, 2, 3):
        replace_file(path, b'{"number":%d}' % number)
    assert load_config_file(path, Counter) == Counter(3)
    assert (tmp_path / "config" / "counter.json.bak").read_bytes() == b'{"number":2}'
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["counter.json", "counter.json.bak"]


def test_a_missing_file_is_nothing(tmp_path) -> None:
    assert load_config_file(tmp_path / "counter.json", Counter) is None


def test_a_backup_alone_is_taken(tmp_path) -> None:
    (tmp_path / "counter.json.bak").write_bytes(b'{"number":1}')
    assert load_config_file(tmp_path / "counter.json", Counter) == Counter(1)
