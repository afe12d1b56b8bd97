"""The broker's defaults, for those who show what somebody has changed."""

from __future__ import annotations

from broker.default_settings import OWN, default_settings
from broker.engine.config import BrokerConfig
from broker.engine.settings import SETTINGS, Settings
from remoting.complaints import ComplaintLog


def test_every_setting_but_those_of_its_own_has_its_default() -> None:
    assert set(default_settings()) == {setting.name for setting in SETTINGS} - OWN


def test_a_fresh_broker_has_them(tmp_path) -> None:
    fresh = Settings(BrokerConfig(store=tmp_path), ComplaintLog()).all_as_text()
    assert {name: fresh[name] for name in default_settings()} == default_settings()


def test_a_changed_one_differs(tmp_path) -> None:
    settings = Settings(BrokerConfig(store=tmp_path), ComplaintLog())
    (tmp_path / "config").mkdir()
    settings.change({"fileReservedTime": "48"})
    assert settings.all_as_text()["fileReservedTime"] == "48"
    assert default_settings()["fileReservedTime"] == "72"
