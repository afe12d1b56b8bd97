from __future__ import annotations

import json

import pytest

from remoting.client.admin import Admin
from remoting.client.admin.groups import GroupChange
from remoting.client.errors import GroupNotFound
from remoting.wire.codes import RequestCode
from tests.support.answering_server import AnsweringServer

# As a later Apache broker tells a group: with a policy, attributes and fields that this client doesn't know.
BILLING = {
    "groupName": "billing",
    "consumeEnable": True,
    "retryMaxTimes": 16,
    "groupRetryPolicy": {"type": "EXPONENTIAL", "exponentialRetryPolicy": {"initial": 5000}},
    "attributes": {"priority": "3"},
    "subscriptionDataSet": [{"topic": "orders"}],
}


def serve(server: AnsweringServer, *groups: dict[str, object]) -> None:
    table = {str(group["groupName"]): group for group in groups}
    server.succeed(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, json.dumps({"subscriptionGroupTable": table}).encode())


async def test_the_settings_of_a_group_are_read_without_making_it(server: AnsweringServer, admin: Admin) -> None:
    serve(server, BILLING)
    config = await admin.groups.config(server.address, "billing")
    assert config is not None
    assert (config.group_name, config.retry_max_times) == ("billing", 16)
    assert await admin.groups.config(server.address, "missing") is None
    assert {request.code for request in server.asked} == {RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG}


async def test_a_change_leaves_every_other_setting_as_it_is(server: AnsweringServer, admin: Admin) -> None:
    serve(server, BILLING)
    changed = await admin.groups.change(server.address, "billing", GroupChange(consume_enable=False, retry_max_times=3))
    assert (changed.consume_enable, changed.retry_max_times) == (False, 3)
    sent = json.loads(bytes(server.asked[-1].body))
    # Attributes that are sent are changes of attributes; without any the broker keeps its own.
    assert sent == BILLING | {"consumeEnable": False, "retryMaxTimes": 3, "attributes": {}}


async def test_a_group_that_is_not_there_is_not_changed(server: AnsweringServer, admin: Admin) -> None:
    serve(server, BILLING)
    with pytest.raises(GroupNotFound, match="no group 'biling'"):
        await admin.groups.change(server.address, "biling", GroupChange(consume_enable=False))
    assert len(server.asked) == 1


async def test_a_group_is_deleted_with_or_without_its_progress(server: AnsweringServer, admin: Admin) -> None:
    await admin.groups.delete(server.address, "billing", clean_offsets=True)
    await admin.groups.delete(server.address, "billing", clean_offsets=False)
    fields = [request.ext_fields for request in server.asked]
    assert fields == [
        {"groupName": "billing", "cleanOffset": "true"},
        {"groupName": "billing", "cleanOffset": "false"},
    ]
