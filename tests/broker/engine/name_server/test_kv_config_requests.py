"""Values that tools keep in the name server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from broker.engine.name_server import kv_config
from broker.engine.name_server.kv_config import KVConfig
from broker.engine.name_server.kv_config_requests import KVConfigRequests
from broker.engine.serving.requests import Request
from remoting.complaints import ComplaintLog
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command
from remoting.wire.errors import MessageError
from tests.support.broker_parts import Wire

ORDER = "ORDER_TOPIC_CONFIG"


@pytest.fixture
def values(tmp_path: Path) -> KVConfig:
    return KVConfig(tmp_path, ComplaintLog())


def ask(values: KVConfig, verb: str, **fields: str) -> Command:
    return getattr(KVConfigRequests(values), verb)(Request(Command(code=100, ext_fields=fields), Wire()))


def test_a_value_is_kept_over_a_restart_and_forgotten_when_deleted(values, tmp_path) -> None:
    ask(values, "put", namespace=ORDER, key="orders", value="broker-a:4")
    assert json.loads((tmp_path / "kvConfig.json").read_bytes()) == {"configTable": {ORDER: {"orders": "broker-a:4"}}}

    again = KVConfig(tmp_path, ComplaintLog())
    again.load()
    assert ask(again, "get", namespace=ORDER, key="orders").ext_fields == {"value": "broker-a:4"}
    assert json.loads(ask(again, "of_namespace", namespace=ORDER).body) == {"table": {"orders": "broker-a:4"}}

    ask(again, "delete", namespace=ORDER, key="orders")
    with pytest.raises(MessageError) as refused:
        ask(again, "get", namespace=ORDER, key="orders")
    assert refused.value.response_code == ResponseCode.QUERY_NOT_FOUND
    assert json.loads(ask(again, "of_namespace", namespace=ORDER).body) == {"table": {}}


def test_what_is_not_there_is_named(values) -> None:
    with pytest.raises(MessageError, match="Namespace: a Key: b"):
        ask(values, "get", namespace="a", key="b")
    with pytest.raises(MessageError, match="Namespace: a"):
        ask(values, "of_namespace", namespace="a")
    assert ask(values, "delete", namespace="a", key="b").code == ResponseCode.SUCCESS


def test_a_value_without_a_name_is_refused(values) -> None:
    with pytest.raises(MessageError, match="namespace or key is null"):
        ask(values, "put", namespace="a", value="c")


def test_values_are_bounded(values, monkeypatch) -> None:
    with pytest.raises(MessageError, match="characters"):
        ask(values, "put", namespace="a", key="b", value="c" * (kv_config.VALUE_CHARS_MAX + 1))
    monkeypatch.setattr(kv_config, "ENTRIES_MAX", 1)
    ask(values, "put", namespace="a", key="b", value="c")
    ask(values, "put", namespace="a", key="b", value="d")
    with pytest.raises(MessageError, match="delete some first"):
        ask(values, "put", namespace="a", key="another", value="c")
