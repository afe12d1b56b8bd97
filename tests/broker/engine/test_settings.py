"""The settings that can be read and changed while the broker runs, and what is kept of them."""

from __future__ import annotations

import pytest

from broker.engine.config import BrokerConfig
from broker.engine.config_files import ConfigFileUnreadable
from broker.engine.settings import FILE_NAME, SETTINGS, Settings
from remoting.complaints import ComplaintLog
from remoting.wire.codes import ResponseCode
from remoting.wire.errors import MessageError
from tests.support.logged import lines_of


def settings_of(folder, complaints=None, **fields) -> tuple[Settings, BrokerConfig]:
    config = BrokerConfig(store=folder, **fields)
    return Settings(config, complaints or ComplaintLog()), config


def test_settings_tell_every_row_of_the_table_as_text(tmp_path):
    settings, _ = settings_of(tmp_path, flush="async")

    told = settings.all_as_text()

    assert list(told) == [setting.name for setting in SETTINGS]
    assert told["messageDelayLevel"].startswith("1s 5s 10s")
    assert told["timerMaxDelaySec"] == "259200"
    assert told["autoCreateTopicEnable"] == "true"
    assert told["flushDiskType"] == "ASYNC_FLUSH"


def test_settings_change_the_config_and_tell_who_listens(tmp_path):
    settings, config = settings_of(tmp_path)
    heard: list[str] = []
    settings.listen("messageDelayLevel", lambda: heard.append(config.delay_levels))

    settings.change({"messageDelayLevel": " 1s  2s ", "maxMessageSize": "1000"})

    assert config.delay_levels == "1s 2s"
    assert config.body_bytes_max == 1000
    assert heard == ["1s 2s"]
    assert settings.version.counter == 1


def test_settings_survive_a_restart(tmp_path):
    settings_of(tmp_path)[0].change({"timerMaxDelaySec": "60"})
    settings_of(tmp_path)[0].change({"recallMessageEnable": "FALSE"})
    settings, config = settings_of(tmp_path)
    settings.load()
    settings.change({"defaultTopicQueueNums": "3"})

    again, config = settings_of(tmp_path)
    again.load()

    assert (config.timer_max_delay_s, config.recalls, config.default_queue_nums) == (60, False, 3)


def test_settings_that_the_command_line_gave_win_over_what_was_kept(tmp_path, caplog):
    settings_of(tmp_path)[0].change({"timerMaxDelaySec": "60"})
    settings, config = settings_of(tmp_path, timer_max_delay_s=90, given=frozenset({"timerMaxDelaySec"}))
    settings.load()

    assert config.timer_max_delay_s == 90
    assert "timerMaxDelaySec=60 does not count" in caplog.text
    with pytest.raises(MessageError, match="given at the broker's start") as refused:
        settings.change({"timerMaxDelaySec": "70"})
    assert refused.value.response_code == ResponseCode.NO_PERMISSION


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("brokerName", "other", ResponseCode.NO_PERMISSION),
        ("configBlackList", "", ResponseCode.NO_PERMISSION),
        ("timerMaxDelaySec", "soon", ResponseCode.INVALID_PARAMETER),
        ("timerMaxDelaySec", "0", ResponseCode.INVALID_PARAMETER),
        ("autoCreateTopicEnable", "yes", ResponseCode.INVALID_PARAMETER),
        ("messageDelayLevel", "1s 5x", ResponseCode.INVALID_PARAMETER),
        ("messageDelayLevel", "", ResponseCode.INVALID_PARAMETER),
        ("brokerPermission", "1", ResponseCode.INVALID_PARAMETER),
    ],
)
def test_settings_refuse_what_cannot_change_or_makes_no_sense_and_change_nothing(tmp_path, name, text, code):
    settings, config = settings_of(tmp_path)

    with pytest.raises(MessageError, match=f"{name}|black list") as refused:
        settings.change({"maxMessageSize": "1000", name: text})

    assert refused.value.response_code == code
    assert config == BrokerConfig(store=tmp_path)
    assert not (tmp_path / "config" / FILE_NAME).exists()


def test_settings_leave_unknown_names_out_as_apache_does(tmp_path):
    settings, config = settings_of(tmp_path)

    settings.change({"noSuchSetting": "1", "maxMessageSize": "1000"})

    assert config.body_bytes_max == 1000
    assert "noSuchSetting" not in (tmp_path / "config" / FILE_NAME).read_text()


def test_settings_that_do_not_exist_are_logged_once_a_minute_and_in_one_line(tmp_path, caplog):
    now_s = [0.0]
    complaints = ComplaintLog(clock=lambda: now_s[0])
    settings, _ = settings_of(tmp_path, complaints)
    for _ in range(20):
        settings.change({"noSuchSetting": "1", "norThis": "1"} | {f"nor{number}": "1" for number in range(1_000)})
    (line,) = lines_of(caplog, "remoting")
    assert line.startswith("there is no setting noSuchSetting, norThis, nor0, ")
    assert len(line) < 300
    now_s[0] = 60.0
    complaints.report_left_out()
    assert lines_of(caplog, "remoting")[1:] == [f"{FILE_NAME}, unknown setting: 19 more in 60 s were not logged"]


def test_settings_that_were_spoiled_by_hand_are_named(tmp_path):
    settings_of(tmp_path)[0].change({"timerMaxDelaySec": "60"})
    (tmp_path / "config" / FILE_NAME).write_text("timerMaxDelaySec=lots\n")

    with pytest.raises(ConfigFileUnreadable, match="timerMaxDelaySec=lots"):
        settings_of(tmp_path)[0].load()
