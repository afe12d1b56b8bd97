"""GET_BROKER_CONFIG and UPDATE_BROKER_CONFIG on real parts."""

from __future__ import annotations

import json

import pytest

from broker.engine.processors.broker_config import GetBrokerConfig, UpdateBrokerConfig
from broker.engine.settings import Settings
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.java_properties import read_properties
from tests.support.broker_parts import BrokerParts


@pytest.fixture
async def parts(tmp_path):
    parts = BrokerParts(tmp_path / "store")
    yield parts
    parts.close()


async def test_broker_config_is_told_as_sorted_lines_with_its_version(parts):
    settings = Settings(parts.config, parts.complaints)
    parts.ask(UpdateBrokerConfig(settings), Command(code=RequestCode.UPDATE_BROKER_CONFIG, body=b"maxMessageSize=99\n"))

    answer = parts.ask(GetBrokerConfig(settings), Command(code=RequestCode.GET_BROKER_CONFIG))

    lines = answer.body.decode().splitlines()
    assert lines == sorted(lines)
    assert read_properties(answer.body.decode())["maxMessageSize"] == "99"
    assert json.loads(answer.ext_fields["version"])["counter"] == 1


async def test_broker_config_is_refused_where_it_cannot_change(parts):
    command = Command(code=RequestCode.UPDATE_BROKER_CONFIG, body=b"brokerName=other")

    answer = parts.ask(UpdateBrokerConfig(Settings(parts.config, parts.complaints)), command)

    assert answer.code == ResponseCode.NO_PERMISSION
    assert answer.remark.startswith("Can not update config in black list.")


async def test_broker_config_that_is_no_text_is_refused(parts):
    command = Command(code=RequestCode.UPDATE_BROKER_CONFIG, body=b"\xff\xfe")

    answer = parts.ask(UpdateBrokerConfig(Settings(parts.config, parts.complaints)), command)

    assert answer.code == ResponseCode.SYSTEM_ERROR
