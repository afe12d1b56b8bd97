"""The name server's settings, as tools read and change them."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.engine.name_server.kv_config import KVConfig
from broker.engine.serving.requests import Processors
from broker.engine.settings import name_server_settings
from broker.engine.wiring.name_server import name_server_processors
from remoting.wire.bodies.document import read_body
from remoting.wire.bodies.route import TopicList, TopicRouteData
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.java_properties import read_properties
from tests.support.broker_parts import BrokerParts


class NameServer:
    """Its answers; made again, it is the next life of the same one."""

    def __init__(self, parts: BrokerParts) -> None:
        self._parts = parts
        settings = name_server_settings(parts.config, parts.complaints)
        settings.load()
        values = KVConfig(parts.config.config_dir, parts.complaints)
        values.load()
        self._processors: Processors = name_server_processors(
            config=parts.config, settings=settings, topics=parts.topics, kv_config=values
        )

    def ask(self, code: int, body: bytes = b"", **fields: str) -> Command:
        answer = self._parts.ask(self._processors[code], Command(code=code, ext_fields=fields, body=body))
        assert answer is not None
        return answer

    def settings(self) -> dict[str, str]:
        return read_properties(bytes(self.ask(RequestCode.GET_NAMESRV_CONFIG).body).decode())

    def change(self, text: str) -> int:
        return self.ask(RequestCode.UPDATE_NAMESRV_CONFIG, text.encode()).code


@pytest.fixture
async def parts(tmp_path: Path):
    parts = BrokerParts(tmp_path / "store")
    yield parts
    parts.close()


async def test_the_name_servers_settings_change_what_it_answers(parts: BrokerParts) -> None:
    server = NameServer(parts)
    order = {"namespace": "ORDER_TOPIC_CONFIG", "key": "TBW102", "value": "broker-a:8"}
    server.ask(RequestCode.PUT_KV_CONFIG, **order)

    def route() -> TopicRouteData:
        return read_body(TopicRouteData, server.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, topic="TBW102").body)

    assert route().order_topic_conf is None
    assert server.change("orderMessageEnable=true\nenableAllTopicList=false\nenableTopicList=false") == 0
    assert route().order_topic_conf == "broker-a:8"
    for code in (RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, RequestCode.GET_TOPICS_BY_CLUSTER):
        refused = server.ask(code, cluster="local")
        assert (refused.code, refused.remark) == (ResponseCode.SYSTEM_ERROR, "disable")
    server = NameServer(parts)
    assert server.settings()["enableTopicList"] == "false", "kept over a restart"
    assert server.change("enableAllTopicList=true") == 0
    listed = server.ask(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
    assert "TBW102" in read_body(TopicList, listed.body).topic_list


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("kvConfigPath=/x", ResponseCode.NO_PERMISSION),
        ("listenPort=1", ResponseCode.NO_PERMISSION),
        ("orderMessageEnable=perhaps", ResponseCode.INVALID_PARAMETER),
        ("somethingElse=1", ResponseCode.SUCCESS),
    ],
)
async def test_a_setting_that_cannot_change_is_refused(parts: BrokerParts, text: str, code: int) -> None:
    server = NameServer(parts)
    before = server.settings()
    assert server.change(text) == code
    assert server.settings() == before
