"""Committed offsets: overwritten as told, saved as RocketMQ writes them, read in every dialect."""

from __future__ import annotations

import asyncio

import pytest

from broker.engine.config_files import ConfigFileUnreadable
from broker.engine.groups.offsets import FILE_NAME, Offsets
from remoting.complaints import ComplaintLog
from tests.support.logged import lines_of
from tests.support.waiting import eventually


def offsets_in(folder, told=None, complaints=None) -> Offsets:
    told = [] if told is None else told
    offsets = Offsets(folder, lambda *key: told.append(key), complaints or ComplaintLog())
    offsets.load()
    return offsets


async def test_offsets_survive_a_restart_once_saved(tmp_path) -> None:
    offsets = offsets_in(tmp_path)
    offsets.commit("billing", "orders", 0, 7)
    offsets.commit("billing", "%RETRY%billing", 0, 1)
    assert offsets_in(tmp_path).committed("billing", "orders", 0) is None
    await offsets.save()
    again = offsets_in(tmp_path)
    assert again.committed("billing", "orders", 0) == 7
    assert sorted(again.topics_of("billing")) == ["%RETRY%billing", "orders"]
    assert again.groups_of("orders") == ["billing"]


def test_offsets_are_read_as_apache_writes_them(tmp_path) -> None:
    (tmp_path / FILE_NAME).write_text('{\n\t"offsetTable":{"orders@billing":{0:5,1:7\n\t\t}\n\t}\n}')
    assert sorted(offsets_in(tmp_path).items()) == [("billing", "orders", 0, 5), ("billing", "orders", 1, 7)]


def test_a_commit_overwrites_and_a_backward_one_is_said(tmp_path, caplog) -> None:
    told: list[tuple] = []
    offsets = offsets_in(tmp_path, told)
    for value in (5, 5, 3):
        offsets.commit("billing", "orders", 0, value)
    assert offsets.committed("billing", "orders", 0) == 3
    assert told == [("billing", "orders", 0)] * 2
    assert "orders@billing queue 0 moved back from 5 to 3" in caplog.text


def test_a_group_that_commits_backwards_again_and_again_is_logged_once_a_minute(tmp_path, caplog) -> None:
    now_s = [0.0]
    complaints = ComplaintLog(clock=lambda: now_s[0])
    offsets = offsets_in(tmp_path, complaints=complaints)
    for _ in range(100):
        for queue_id in range(4):
            offsets.commit("billing", "orders", queue_id, 5)
            offsets.commit("billing", "orders", queue_id, 3)
    offsets.commit("audit", "orders", 0, 5)
    offsets.commit("audit", "orders", 0, 4)
    assert lines_of(caplog, "remoting") == [
        "orders@billing queue 0 moved back from 5 to 3",
        "orders@audit queue 0 moved back from 5 to 4",
    ]
    now_s[0] = 60.0
    complaints.report_left_out()
    assert lines_of(caplog, "remoting")[2:] == ["billing, moved back: 399 more in 60 s were not logged"]


async def test_an_unreadable_file_is_replaced_by_its_backup_and_said(tmp_path, caplog) -> None:
    offsets = offsets_in(tmp_path)
    for value in (1, 2):
        offsets.commit("billing", "orders", 0, value)
        await offsets.save()
    (tmp_path / FILE_NAME).write_bytes(b"{torn")
    assert offsets_in(tmp_path).committed("billing", "orders", 0) == 1
    assert "taking the backup" in caplog.text


def test_unreadable_files_stop_the_start_with_a_remedy(tmp_path) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"{torn")
    with pytest.raises(ConfigFileUnreadable, match="mend one of them, or move both away"):
        offsets_in(tmp_path)


async def test_nothing_is_written_when_nothing_changed(tmp_path) -> None:
    await offsets_in(tmp_path).save()
    assert not (tmp_path / FILE_NAME).exists()


async def test_a_failed_save_is_tried_again(tmp_path, monkeypatch) -> None:
    offsets = offsets_in(tmp_path)
    offsets.commit("billing", "orders", 0, 7)
    blocked = tmp_path / f"{FILE_NAME}.tmp"
    blocked.mkdir()
    with pytest.raises(OSError, match="directory"):
        await offsets.save()
    blocked.rmdir()
    await offsets.save()
    assert offsets_in(tmp_path).committed("billing", "orders", 0) == 7


async def test_forgotten_topics_and_groups_are_gone(tmp_path) -> None:
    offsets = offsets_in(tmp_path)
    for group in ("billing", "mailing"):
        for topic in ("orders", "refunds"):
            offsets.commit(group, topic, 0, 1)
            offsets.pulled(group, topic, 0, 2)
    offsets.forget_topic("orders")
    offsets.forget_group("mailing")
    assert list(offsets.items()) == [("billing", "refunds", 0, 1)]
    assert offsets.pulled_offset("billing", "refunds", 0) == 2
    assert offsets.pulled_offset("mailing", "refunds", 0) is None


async def test_what_is_forgotten_is_saved_at_once(tmp_path) -> None:
    """A topic of the same name begins at 0; after a kill the old offsets would skip its first messages."""
    offsets = offsets_in(tmp_path)
    offsets.start()
    offsets.commit("billing", "orders", 0, 1)
    await offsets.save()
    offsets.forget_topic("refunds")
    await asyncio.sleep(0.01)
    assert offsets_in(tmp_path).committed("billing", "orders", 0) == 1
    offsets.forget_topic("orders")
    await eventually(lambda: offsets_in(tmp_path).committed("billing", "orders", 0) is None)
    await offsets.stop()


async def test_offsets_beyond_the_end_of_a_queue_are_clamped_to_it(tmp_path, caplog) -> None:
    offsets = offsets_in(tmp_path)
    for queue_id, value in enumerate((5, 9, 10)):
        offsets.commit("billing", "orders", queue_id, value)
    offsets.clamp_to_queue_ends(lambda topic, queue_id: 9)
    assert [offsets.committed("billing", "orders", queue_id) for queue_id in range(3)] == [5, 9, 9]
    assert "orders@billing queue 2: committed 10, the queue ends at 9" in caplog.text
    await offsets.save()
    assert offsets_in(tmp_path).committed("billing", "orders", 2) == 9
