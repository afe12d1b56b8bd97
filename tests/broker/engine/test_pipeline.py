"""The pipeline of a whole broker: a stage that is added first sees every request, and can refuse it."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.engine.broker import Broker
from broker.engine.config import BrokerConfig
from broker.engine.pipeline import fill_tables
from broker.engine.schedule.level_history import LevelHistory
from broker.engine.serving.request_table import RequestTable
from broker.engine.serving.requests import Request
from broker.engine.settings import Settings
from remoting.complaints import ComplaintLog
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command
from remoting.wire.errors import MessageError
from tests.support.broker_parts import Wire
from tests.support.delay_levels import DEFAULT_LEVELS
from tests.support.stores import SMALL, ManualClock, open_store


@pytest.fixture
def broker(tmp_path: Path):
    config = BrokerConfig(store=tmp_path)
    levels = LevelHistory(config.config_dir, DEFAULT_LEVELS)
    store = open_store(tmp_path, SMALL, ManualClock())
    complaints = ComplaintLog()
    settings = Settings(config, complaints)
    yield Broker(config=config, settings=settings, levels=levels, store=store, complaints=complaints)
    store.close()


@pytest.mark.parametrize("port", ["broker", "name server"])
def test_a_stage_of_both_ports_sees_every_code_of_each_and_can_refuse_it(broker: Broker, port: str) -> None:
    seen: list[int] = []

    def refuse(request: Request) -> None:
        seen.append(request.command.code)
        raise MessageError("not you", ResponseCode.NO_PERMISSION)

    tables = {name: RequestTable(name) for name in ("broker", "name server")}
    fill_tables(*tables.values(), broker, stages_of_both_ports=[refuse])
    table = tables[port]
    codes = sorted(table.processors)
    wire = Wire()
    table.requests_received(wire, [Command(code=code) for code in codes])
    assert codes
    assert seen == codes
    assert [(answer.code, answer.remark) for answer in wire.sent] == [(ResponseCode.NO_PERMISSION, "not you")] * len(
        codes
    )
