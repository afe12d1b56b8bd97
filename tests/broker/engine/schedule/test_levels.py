"""The delay levels and their text."""

from __future__ import annotations

import pytest

from broker.engine.config import BrokerConfig
from broker.engine.schedule.levels import DelayLevelError, parse_levels
from broker.engine.store.values import DELAY_LEVELS_MS
from tests.support.delay_levels import DEFAULT_LEVELS

MINUTE_MS = 60_000


def test_default_levels_are_rocketmqs_eighteen():
    assert DEFAULT_LEVELS.highest == 18
    assert DEFAULT_LEVELS.delays_ms[:5] == (1_000, 5_000, 10_000, 30_000, MINUTE_MS)
    assert DEFAULT_LEVELS.delay_ms(18) == 120 * MINUTE_MS


def test_default_levels_are_the_same_in_store_and_config(tmp_path):
    assert DEFAULT_LEVELS.delays_ms == DELAY_LEVELS_MS
    assert parse_levels(BrokerConfig(store=tmp_path).delay_levels) == DEFAULT_LEVELS


def test_levels_above_the_table_count_as_the_highest():
    levels = parse_levels("1s 2m")

    assert levels.clamp(7) == 2
    assert levels.delay_ms(7) == 2 * MINUTE_MS


def test_levels_know_all_units():
    assert parse_levels("1s 1m 1h 1d").delays_ms == (1_000, MINUTE_MS, 60 * MINUTE_MS, 24 * 60 * MINUTE_MS)


@pytest.mark.parametrize("text", ["", "1s 5", "1s x", "s", "-1s", "1.5s", "3661d", "9" * 5000 + "s", "1s " * 101])
def test_levels_refuse_a_text_that_is_none(text):
    with pytest.raises(DelayLevelError):
        parse_levels(text)


def test_levels_may_be_a_hundred_of_ten_years():
    assert parse_levels("3660d " * 100).highest == 100
