"""Tables whose changes are single lines: what survives a kill at any byte, a damaged line, a full disk."""

from __future__ import annotations

import asyncio
import errno
import shutil
import threading
from pathlib import Path
from zlib import crc32

import pytest

from broker.engine.config_files import ConfigFileUnreadable, ConfigFileUnwritable
from broker.engine.config_table import ConfigTable
from broker.engine.store.files import FileLayer
from remoting.complaints import ComplaintLog
from remoting.wire.bodies.topics import TopicConfig, TopicTable
from remoting.wire.codes import ResponseCode
from remoting.wire.errors import MessageError
from tests.support.faulty_files import FaultyFiles, UnflushedFiles
from tests.support.logged import lines_of
from tests.support.waiting import eventually

Topics = ConfigTable[TopicTable, TopicConfig]
# The names that the table of the test reported last.
CHANGED: list[str] = []


def table_in(
    folder: Path,
    files: FileLayer | None = None,
    changes_bytes_max: int = 1 << 20,
    unflushed_max: int = 100,
    complaints: ComplaintLog | None = None,
) -> Topics:
    path = folder / "topics.json"
    table: Topics = ConfigTable(
        path,
        TopicTable(),
        "topic_config_table",
        TopicConfig,
        on_changed=CHANGED.append,
        fold_interval_s=60.0,
        complaints=complaints or ComplaintLog(),
        files=files,
        changes_bytes_max=changes_bytes_max,
        unflushed_max=unflushed_max,
    )
    CHANGED.clear()
    table.load({})
    return table


def put(table: Topics, *names: str, queue_nums: int = 8) -> None:
    table.save({name: TopicConfig(topic_name=name, read_queue_nums=queue_nums) for name in names})


def state(table: Topics) -> tuple[int, dict[str, int]]:
    queue_nums = {name: topic.read_queue_nums for name, topic in table.entries.items()}
    return table.table.data_version.counter, queue_nums


def killed(folder: Path, tmp_path: Path, name: str = "after") -> Path:
    """The folder as a kill leaves it."""
    shutil.rmtree(tmp_path / name, ignore_errors=True)
    return shutil.copytree(folder, tmp_path / name)


def test_what_was_saved_is_there_after_a_kill(tmp_path) -> None:
    table = table_in(tmp_path / "config")
    put(table, "a", "b")
    put(table, "a", queue_nums=4)
    table.save({}, ["b"])
    put(table, "c")
    again = table_in(killed(tmp_path / "config", tmp_path))
    assert state(again) == state(table) == (4, {"a": 4, "c": 8})
    assert again.table == table.table


def test_the_first_change_writes_the_file_and_the_next_ones_do_not(tmp_path) -> None:
    table = table_in(tmp_path)
    put(table, "a")
    whole = (tmp_path / "topics.json").read_bytes()
    put(table, "b")
    assert (tmp_path / "topics.json").read_bytes() == whole
    assert (tmp_path / "topics.json.changes").exists()


@pytest.mark.parametrize("how", ["close", "start"])
def test_a_stop_and_a_start_leave_rocketmqs_own_file_alone(tmp_path, how: str) -> None:
    table = table_in(tmp_path)
    put(table, "a")
    put(table, "b")
    if how == "close":
        table.close()
    else:
        table_in(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["topics.json", "topics.json.bak"]
    assert state(table_in(tmp_path)) == (2, {"a": 8, "b": 8})
    assert (tmp_path / "topics.json").read_bytes() == (tmp_path / "topics.json.bak").read_bytes()


async def test_the_file_is_written_whole_when_nothing_changed_between_two_rounds(tmp_path) -> None:
    table = table_in(tmp_path)
    put(table, "a")
    put(table, "b")
    await table.fold_when_quiet()
    put(table, "c")
    await table.fold_when_quiet()
    assert (tmp_path / "topics.json.changes").exists()
    await table.fold_when_quiet()
    assert not (tmp_path / "topics.json.changes").exists()
    assert state(table_in(killed(tmp_path, tmp_path.parent))) == (3, {"a": 8, "b": 8, "c": 8})
    put(table, "d")
    assert state(table_in(killed(tmp_path, tmp_path.parent))) == (4, {"a": 8, "b": 8, "c": 8, "d": 8})


async def test_a_change_while_the_file_is_written_whole_is_not_lost(tmp_path) -> None:
    class ChangingFiles(FaultyFiles):
        def replace(self, path, content, backup, *, flushes=True) -> None:  # type: ignore[no-untyped-def]
            if names:
                put(table, names.pop())
            super().replace(path, content, backup, flushes=flushes)

    names: list[str] = []
    table = table_in(tmp_path, ChangingFiles())
    put(table, "a")
    put(table, "b")
    await table.fold_when_quiet()
    names.append("c")
    await table.fold_when_quiet()
    assert state(table_in(killed(tmp_path, tmp_path.parent))) == state(table) == (3, {"a": 8, "b": 8, "c": 8})


def test_a_kill_between_the_whole_file_and_the_removal_of_its_lines_changes_nothing(tmp_path) -> None:
    table = table_in(tmp_path)
    for name in "abc":
        put(table, name)
    table.save({}, ["b"])
    lines = (tmp_path / "topics.json.changes").read_bytes()
    table.close()
    (tmp_path / "topics.json.changes").write_bytes(lines)
    assert state(table_in(tmp_path)) == (4, {"a": 8, "c": 8})


def test_lines_that_have_grown_too_many_are_folded_into_the_file(tmp_path) -> None:
    table = table_in(tmp_path, changes_bytes_max=1_000)
    sizes = set()
    for number in range(40):
        put(table, f"topic-{number}")
        sizes.add((tmp_path / "topics.json").stat().st_size)
    assert 3 < len(sizes) < 20
    assert state(table_in(killed(tmp_path, tmp_path.parent))) == state(table)


@pytest.mark.parametrize("step", [11, pytest.param(1, marks=pytest.mark.sweep)])
def test_a_cut_at_any_byte_leaves_exactly_the_changes_before_it(tmp_path, step: int) -> None:
    config = tmp_path / "config"
    table = table_in(config)
    put(table, "first")
    changes = config / "topics.json.changes"
    states = [(0, state(table))]
    for name, gone in (("a", ()), ("b", ("a",)), ("a", ())):
        table.save({name: TopicConfig(topic_name=name, read_queue_nums=len(states))}, gone)
        states.append((len(changes.read_bytes().rstrip(b"\0")), state(table)))
    lines, end = changes.read_bytes(), states[-1][0]
    base = (config / "topics.json").read_bytes()
    around_changes = {byte_count + near for byte_count, _ in states for near in (-1, 0, 1)}
    for cut in sorted((around_changes | {*range(0, end, step)}) & {*range(end + 1)}):
        (config / "topics.json").write_bytes(base)
        # Zeros, as the space ahead is; and a file that ends there.
        for torn in (lines[:cut].ljust(end + 100, b"\0"), lines[:cut]):
            changes.write_bytes(torn)
            expected = [known for byte_count, known in states if byte_count <= cut][-1]
            assert state(table_in(config, UnflushedFiles())) == expected, f"cut at byte {cut}"
            (config / "topics.json").write_bytes(base)


def test_a_damaged_line_is_left_out_and_said_and_those_behind_it_count(tmp_path, caplog) -> None:
    table = table_in(tmp_path)
    put(table, "a")
    for name in "bcd":
        put(table, name)
    changes = tmp_path / "topics.json.changes"
    lines = changes.read_bytes()
    changes.write_bytes(lines.replace(b'"c"', b'"x"', 1))
    assert state(table_in(tmp_path)) == (4, {"a": 8, "b": 8, "d": 8})
    assert "lines [2] are damaged" in caplog.text
    assert "the changes 3 to 3 are missing" in caplog.text


def test_a_damaged_file_loses_nothing(tmp_path) -> None:
    table = table_in(tmp_path)
    put(table, "a")
    put(table, "b")
    (tmp_path / "topics.json").write_bytes(b"{torn")
    assert state(table_in(tmp_path)) == (2, {"a": 8, "b": 8})


@pytest.mark.parametrize("fault", ["write", "half a write", "sync"])
def test_a_change_that_cannot_be_written_is_refused_and_stays_refused_after_a_kill(tmp_path, fault: str) -> None:
    files = FaultyFiles()
    table = table_in(tmp_path, files)
    put(table, "a")
    put(table, "b")
    before = state(table)
    if fault == "sync":
        files.sync_error = errno.EIO
    else:
        files.write_error, files.write_bytes = errno.EIO, 40 if fault == "half a write" else 0
    with pytest.raises(ConfigFileUnwritable, match=r"topics\.json cannot be written"):
        put(table, "refused")
    assert state(table) == before
    assert state(table_in(killed(tmp_path, tmp_path.parent))) == before
    files.sync_error = None
    put(table, "c")
    assert state(table_in(killed(tmp_path, tmp_path.parent))) == (3, {"a": 8, "b": 8, "c": 8})


def test_a_full_disk_refuses_and_changes_nothing(tmp_path) -> None:
    files = FaultyFiles()
    table = table_in(tmp_path, files)
    put(table, "a")
    files.is_full = True
    with pytest.raises(ConfigFileUnwritable):
        put(table, "b")
    files.is_full = False
    put(table, "b")
    assert state(table_in(tmp_path)) == (2, {"a": 8, "b": 8})


def test_a_disk_that_takes_no_change_is_logged_once_a_minute_and_not_for_each_change(
    tmp_path, monkeypatch, caplog
) -> None:
    def replace(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space")

    now_s = [0.0]
    complaints = ComplaintLog(clock=lambda: now_s[0])
    files = FaultyFiles()
    table = table_in(tmp_path, files, complaints=complaints)
    put(table, "a")
    files.is_full = True
    monkeypatch.setattr(files, "replace", replace)
    for number in range(20):
        with pytest.raises(ConfigFileUnwritable):
            put(table, f"b{number}")
    (line,) = lines_of(caplog, "remoting")
    assert "topics.json cannot be written" in line
    now_s[0] = 60.0
    complaints.report_left_out()
    assert lines_of(caplog, "remoting")[1:] == ["topics.json, not written: 19 more in 60 s were not logged"]


def test_lines_that_say_something_else_stop_the_start(tmp_path) -> None:
    table = table_in(tmp_path)
    put(table, "a")
    line = b"%08x %s\n" % (crc32(b"[]"), b"[]")
    (tmp_path / "topics.json.changes").write_bytes(line)
    with pytest.raises(ConfigFileUnreadable, match="move it away"):
        table_in(tmp_path)


def test_a_table_that_was_not_read_is_not_written(tmp_path) -> None:
    (tmp_path / "topics.json").write_bytes(b"{torn")
    with pytest.raises(ConfigFileUnreadable):
        table_in(tmp_path)
    assert (tmp_path / "topics.json").read_bytes() == b"{torn"


class GatedFiles(FaultyFiles):
    """Lets an fdatasync of the thread begin (`began`) and holds it up until `gate` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.began = threading.Event()
        self.gate = threading.Event()

    def fdatasync(self, descriptor: int) -> None:  # type: ignore[override]
        if threading.current_thread() is not threading.main_thread():
            self.began.set()
            assert self.gate.wait(60)
        super().fdatasync(descriptor)


class Submitted:
    """Submits changes, and keeps what became of each in the order of the answers."""

    def __init__(self, table: Topics) -> None:
        self.table = table
        self.results: list[tuple[str, Exception | None]] = []

    def put(self, *names: str, queue_nums: int = 8) -> None:
        for name in names:
            entry = TopicConfig(topic_name=name, read_queue_nums=queue_nums)
            self.table.submit({name: entry}, (), lambda error, name=name: self.results.append((name, error)))

    async def answered(self, count: int) -> None:
        await eventually(lambda: len(self.results) == count)

    @property
    def accepted(self) -> list[str]:
        return [name for name, error in self.results if error is None]


async def gated(folder: Path) -> tuple[Topics, GatedFiles, Submitted]:
    """A table whose first submitted change is being flushed."""
    files = GatedFiles()
    table = table_in(folder, files)
    put(table, "whole")
    submitted = Submitted(table)
    submitted.put("first")
    await asyncio.to_thread(files.began.wait)
    return table, files, submitted


async def test_changes_that_come_during_a_flush_share_the_next_one(tmp_path) -> None:
    table, files, submitted = await gated(tmp_path)
    submitted.put(*"abcdefgh")
    assert (submitted.results, table.entries.keys()) == ([], {"whole"}), "counts only once it is on the disk"
    before = files.sync_count
    files.gate.set()
    await submitted.answered(9)
    assert submitted.accepted == ["first", *"abcdefgh"] == CHANGED[1:]
    assert files.sync_count == before + 2
    assert state(table_in(killed(tmp_path, tmp_path.parent))) == state(table)
    await table.stop()


async def test_a_change_that_is_saved_at_once_takes_the_submitted_ones_before_it_along(tmp_path) -> None:
    table, files, submitted = await gated(tmp_path)
    submitted.put("a", queue_nums=1)
    put(table, "a", queue_nums=2)
    assert (submitted.accepted, table.entries["a"].read_queue_nums) == (["first", "a"], 2)
    submitted.put("b")
    files.gate.set()
    await submitted.answered(3)
    assert (
        state(table_in(killed(tmp_path, tmp_path.parent)))
        == state(table)
        == (5, {"whole": 8, "first": 8, "a": 2, "b": 8})
    )
    await table.stop()


async def test_a_failed_flush_refuses_all_that_waited_and_none_of_it_counts(tmp_path) -> None:
    table, files, submitted = await gated(tmp_path)
    submitted.put("a", "b")
    before = state(table)
    files.sync_error = errno.EIO
    files.gate.set()
    await submitted.answered(3)
    assert (submitted.accepted, state(table), CHANGED) == ([], before, ["whole"])
    assert state(table_in(killed(tmp_path, tmp_path.parent))) == before
    files.sync_error = None
    submitted.put("c")
    assert submitted.accepted == ["c"]
    assert state(table_in(killed(tmp_path, tmp_path.parent))) == state(table) == (2, {"whole": 8, "c": 8})
    await table.stop()


async def test_the_file_written_whole_holds_the_changes_that_wait_for_a_flush(tmp_path) -> None:
    table, files, submitted = await gated(tmp_path)
    files.write_error = errno.EIO
    submitted.put("refused", "a")
    assert [name for name, error in submitted.results if error is not None] == ["refused"]
    assert submitted.accepted == ["first", "a"]
    files.gate.set()
    submitted.put("b")
    await submitted.answered(4)
    assert (
        state(table_in(killed(tmp_path, tmp_path.parent)))
        == state(table)
        == (4, {"whole": 8, "first": 8, "a": 8, "b": 8})
    )
    await table.stop()


async def test_a_stop_waits_for_what_was_submitted(tmp_path) -> None:
    table, files, submitted = await gated(tmp_path)
    submitted.put("a")
    files.gate.set()
    await table.stop()
    assert submitted.accepted == ["first", "a"]
    assert state(table_in(tmp_path)) == (3, {"whole": 8, "first": 8, "a": 8})


async def test_no_more_changes_wait_for_the_disk_than_are_allowed(tmp_path) -> None:
    files = GatedFiles()
    table = table_in(tmp_path, files, unflushed_max=2)
    put(table, "whole")
    submitted = Submitted(table)
    submitted.put("a", "b")
    with pytest.raises(MessageError, match="wait for the disk") as refused:
        submitted.put("c")
    assert refused.value.response_code == ResponseCode.SYSTEM_BUSY
    files.gate.set()
    await table.stop()
    assert submitted.accepted == ["a", "b"]
