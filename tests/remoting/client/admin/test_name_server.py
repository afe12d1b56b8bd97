from __future__ import annotations

from remoting.client.admin import Admin
from remoting.wire.codes import RequestCode, ResponseCode
from tests.support.answering_server import AnsweringServer


async def test_a_name_servers_settings_are_read_and_changed(server: AnsweringServer, admin: Admin) -> None:
    server.succeed(RequestCode.GET_NAMESRV_CONFIG, b"listenPort=9876\norderMessageEnable=false\n")
    settings = await admin.name_server.config(server.address)
    assert settings == {"listenPort": "9876", "orderMessageEnable": "false"}
    await admin.name_server.update_config(server.address, {"orderMessageEnable": "true"})
    assert bytes(server.asked[1].body) == b"orderMessageEnable=true\n"


async def test_values_for_tools_are_read_put_and_deleted(server: AnsweringServer, admin: Admin) -> None:
    server.succeed(RequestCode.GET_KVLIST_BY_NAMESPACE, b'{"table":{"orders":"broker-a:8"}}')
    server.succeed(RequestCode.GET_KV_CONFIG, value="broker-a:8")
    assert await admin.name_server.values(server.address, "ORDER_TOPIC_CONFIG") == {"orders": "broker-a:8"}
    assert await admin.name_server.value(server.address, "ORDER_TOPIC_CONFIG", "orders") == "broker-a:8"
    await admin.name_server.put_value(server.address, "ORDER_TOPIC_CONFIG", "orders", "broker-a:4")
    await admin.name_server.delete_value(server.address, "ORDER_TOPIC_CONFIG", "orders")
    key = {"namespace": "ORDER_TOPIC_CONFIG", "key": "orders"}
    assert [request.ext_fields for request in server.asked[1:]] == [key, key | {"value": "broker-a:4"}, key]


async def test_values_that_are_not_there_are_none(server: AnsweringServer, admin: Admin) -> None:
    server.refuse(RequestCode.GET_KVLIST_BY_NAMESPACE, ResponseCode.QUERY_NOT_FOUND)
    server.refuse(RequestCode.GET_KV_CONFIG, ResponseCode.QUERY_NOT_FOUND)
    assert await admin.name_server.values(server.address, "nothing") == {}
    assert await admin.name_server.value(server.address, "nothing", "orders") is None


async def test_topics_are_listed_and_the_permission_to_write_is_taken_and_given(
    server: AnsweringServer, admin: Admin
) -> None:
    server.succeed(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, b'{"topicList":["orders","%RETRY%g1"]}')
    server.succeed(RequestCode.GET_TOPICS_BY_CLUSTER, b'{"topicList":["orders"]}')
    server.succeed(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS, b'{"brokerAddr":"h:1","topicList":["C1"]}')
    server.succeed(RequestCode.WIPE_WRITE_PERM_OF_BROKER, wipeTopicCount=7)
    server.succeed(RequestCode.ADD_WRITE_PERM_OF_BROKER, addTopicCount=8)
    assert await admin.cluster.topics(server.address) == ["orders", "%RETRY%g1"]
    assert await admin.cluster.topics_of(server.address, "C1") == ["orders"]
    assert (await admin.cluster.system_topics(server.address)).broker_addr == "h:1"
    assert await admin.cluster.wipe_write_permission(server.address, "a") == 7
    assert await admin.cluster.add_write_permission(server.address, "a") == 8
    assert server.asked[-1].ext_fields == {"brokerName": "a"}
