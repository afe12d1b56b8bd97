"""A name server that serves its own broker."""

from __future__ import annotations

import json
from pathlib import Path

from broker.engine.config import BrokerConfig
from broker.engine.name_server.registration import Registration
from broker.engine.serving.requests import Request
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command
from tests.support.broker_parts import Wire


def ask(verb: str, **fields: str) -> Command:
    config = BrokerConfig(store=Path("/store"), advertise_host="10.1.2.3", namesrv_port=9876)
    return getattr(Registration(config), verb)(Request(Command(code=901, ext_fields=fields), Wire()))


def test_another_broker_is_refused_with_the_way_out() -> None:
    answer = ask("refuse_broker", brokerName="broker-b")
    assert answer.code == ResponseCode.NO_PERMISSION
    assert "broker-a at 10.1.2.3:10911" in answer.remark
    assert "name server of its own" in answer.remark


def test_what_changes_nothing_is_accepted() -> None:
    assert ask("accept", topic="orders").code == ResponseCode.SUCCESS


def test_the_only_member_of_the_broker_group_is_the_broker() -> None:
    group = json.loads(ask("members", clusterName="local", brokerName="broker-a").body)["brokerMemberGroup"]
    assert group == {"brokerAddrs": {"0": "10.1.2.3:10911"}, "brokerName": "broker-a", "cluster": "local"}
    nobody = json.loads(ask("members", clusterName="local", brokerName="broker-b").body)["brokerMemberGroup"]
    assert nobody["brokerAddrs"] == {}
