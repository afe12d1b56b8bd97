"""Which table of delay levels counted where in the log."""

from __future__ import annotations

import pytest

from broker.engine.config_files import ConfigFileUnreadable
from broker.engine.schedule.level_history import FILE_NAME, LevelHistory
from broker.engine.schedule.levels import parse_levels
from tests.support.delay_levels import DEFAULT_LEVELS

ONE, TWO, THREE = parse_levels("1s"), parse_levels("2s 1h"), parse_levels("3s 90s 1d")


def test_history_starts_with_the_table_that_the_broker_was_told(tmp_path):
    history = LevelHistory(tmp_path, ONE)

    assert history.current == history.at(0) == history.at(1 << 40) == ONE


def test_history_tells_the_table_of_each_place_also_after_a_restart(tmp_path):
    history = LevelHistory(tmp_path, ONE)
    assert history.change(TWO, end=100, low=0)
    assert history.change(THREE, end=200, low=0)

    for one in (history, LevelHistory(tmp_path, DEFAULT_LEVELS)):
        assert [one.at(place) for place in (0, 99, 100, 199, 200, 999)] == [ONE, ONE, TWO, TWO, THREE, THREE]
        assert one.current == THREE


def test_history_keeps_its_first_table_although_nothing_changes(tmp_path):
    history = LevelHistory(tmp_path, ONE)

    assert not history.change(parse_levels("1s"), end=100, low=0)
    assert LevelHistory(tmp_path, TWO).current == ONE


def test_history_forgets_what_counted_only_for_messages_that_are_gone(tmp_path):
    history = LevelHistory(tmp_path, ONE)
    history.change(TWO, end=100, low=0)
    history.change(THREE, end=200, low=150)

    assert history.changes == [(100, TWO), (200, THREE)]


def test_history_keeps_the_last_of_changes_between_which_nothing_was_stored(tmp_path):
    history = LevelHistory(tmp_path, ONE)
    history.change(TWO, end=0, low=0)
    history.change(THREE, end=0, low=0)

    assert history.changes == [(0, THREE)]


def test_history_that_cannot_be_read_stops_the_start(tmp_path):
    (tmp_path / FILE_NAME).write_text("{torn")

    with pytest.raises(ConfigFileUnreadable):
        LevelHistory(tmp_path, ONE)


@pytest.mark.parametrize("text", ["1s 5s 10s 30s 1m 2h", "90s 1d", "1s 1s 1s"])
def test_levels_are_written_as_they_are_read(text):
    assert str(parse_levels(text)) == text
