"""The file of delayed delivery's progress, in RocketMQ's format."""

from __future__ import annotations

import pytest

from broker.engine.schedule.progress import DelayProgress, ProgressFile, decode_progress, encode_progress


def test_progress_is_written_in_rocketmqs_format():
    text = encode_progress(DelayProgress({3: 4, 1: 17}, counter=2, changed_ms=5))

    assert text == b'{"dataVersion":{"counter":2,"stateVersion":0,"timestamp":5},"offsetTable":{1:17,3:4}}'


@pytest.mark.parametrize("delivering_from", [None, 0, 77])
def test_progress_is_read_as_it_was_written(delivering_from):
    progress = DelayProgress({3: 4, 18: 2**40}, delivering_from, counter=9, changed_ms=5)

    assert decode_progress(encode_progress(progress)) == progress


def test_progress_reads_what_apache_writes():
    text = b'{\n\t"dataVersion":{"counter":1,"stateVersion":0,"timestamp":1},\n\t"offsetTable":{3:5,4:1\n\t}\n}'

    assert decode_progress(text).next_offsets == {3: 5, 4: 1}


def test_progress_takes_the_backup_when_the_file_is_garbage(tmp_path, caplog):
    file = ProgressFile(tmp_path / "delayOffset.json")
    file.write(DelayProgress({1: 1}))
    file.write(DelayProgress({1: 2}))
    (tmp_path / "delayOffset.json").write_bytes(b"{")

    assert file.read().next_offsets == {1: 1}
    assert "cannot be read" in caplog.text


def test_progress_is_none_without_a_file(tmp_path):
    assert ProgressFile(tmp_path / "delayOffset.json").read() is None
