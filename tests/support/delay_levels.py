"""The table of delay levels that a broker has when nobody sets another."""

from __future__ import annotations

from broker.engine.schedule.levels import DEFAULT_LEVELS_TEXT, parse_levels

DEFAULT_LEVELS = parse_levels(DEFAULT_LEVELS_TEXT)
