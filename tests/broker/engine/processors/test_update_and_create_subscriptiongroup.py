"""Groups made, changed, asked for and deleted by tools."""

from __future__ import annotations

import msgspec
import pytest

from broker.engine.processors.delete_subscriptiongroup import DeleteSubscriptionGroup
from broker.engine.processors.get_subscriptiongroup_config import GetSubscriptionGroupConfig
from broker.engine.processors.update_and_create_subscriptiongroup import UpdateAndCreateSubscriptionGroup
from remoting.wire.bodies.document import read_body, write_body
from remoting.wire.bodies.groups import SubscriptionGroupConfig, SubscriptionGroupList
from remoting.wire.bodies.topics import TopicConfig
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from tests.support.broker_parts import BrokerParts, save_topic

BILLING = SubscriptionGroupConfig(group_name="billing", retry_max_times=3, consume_enable=False)


@pytest.fixture
async def parts(tmp_path):
    parts = BrokerParts(tmp_path / "store")
    yield parts
    parts.close()


def put(parts: BrokerParts, body: bytes) -> Command:
    processor = UpdateAndCreateSubscriptionGroup(parts.groups, parts.topics, parts.held_pulls)
    return parts.ask(processor, Command(code=RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body))


def delete(parts: BrokerParts, **fields: str) -> Command:
    processor = DeleteSubscriptionGroup(parts.groups, parts.offsets, parts.watch.assignments, parts.held_pulls)
    return parts.ask(processor, Command(code=RequestCode.DELETE_SUBSCRIPTIONGROUP, ext_fields=fields))


def told(parts: BrokerParts, group: str) -> SubscriptionGroupConfig | int:
    command = Command(code=RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, ext_fields={"group": group})
    answer = parts.ask(GetSubscriptionGroupConfig(parts.groups), command)
    return read_body(SubscriptionGroupConfig, answer.body) if answer.code == ResponseCode.SUCCESS else answer.code


async def test_a_group_is_what_the_tool_said(parts) -> None:
    assert put(parts, write_body(BILLING)).code == ResponseCode.SUCCESS
    assert told(parts, "billing") == BILLING


@pytest.mark.parametrize(("second", "code"), [("mailing", 0), ("not a name", ResponseCode.INVALID_PARAMETER)])
async def test_several_groups_come_together_or_not_at_all(parts, second, code) -> None:
    groups = [BILLING, SubscriptionGroupConfig(group_name=second)]
    processor = UpdateAndCreateSubscriptionGroup(parts.groups, parts.topics, parts.held_pulls)
    body = write_body(SubscriptionGroupList(group_config_list=groups))
    command = Command(code=RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, body=body)
    assert parts.ask(processor.put_list, command).code == code
    assert [parts.groups.exists(group.group_name) for group in groups] == [not code] * 2


async def test_asking_for_a_group_makes_it_where_that_is_allowed(parts, tmp_path) -> None:
    assert told(parts, "mailing") == SubscriptionGroupConfig(group_name="mailing")
    assert told(parts, "not a name") == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
    strict = BrokerParts(tmp_path / "strict", creates_groups=False)
    assert told(strict, "mailing") == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
    strict.close()


async def test_the_retry_topic_grows_with_its_group_and_never_shrinks(parts) -> None:
    save_topic(parts.topics, TopicConfig(topic_name="%RETRY%billing", read_queue_nums=1, write_queue_nums=1))
    for number in (3, 1):
        assert put(parts, write_body(msgspec.structs.replace(BILLING, retry_queue_nums=number))).code == 0
    retry = parts.topics.find("%RETRY%billing")
    assert (retry.read_queue_nums, retry.write_queue_nums) == (3, 3)
    put(parts, write_body(SubscriptionGroupConfig(group_name="mailing", retry_queue_nums=3)))
    assert parts.topics.find("%RETRY%mailing") is None, "it comes with the first member"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", ResponseCode.SYSTEM_ERROR),
        (b"{}", ResponseCode.SYSTEM_ERROR),
        (b'{"groupName":"not a name"}', ResponseCode.INVALID_PARAMETER),
        (b'{"groupName":""}', ResponseCode.INVALID_PARAMETER),
        (b'{"groupName":"billing","retryQueueNums":-1}', ResponseCode.INVALID_PARAMETER),
        (b'{"groupName":"billing","attributes":{"+colour":"red"}}', ResponseCode.SYSTEM_ERROR),
    ],
)
async def test_a_group_that_cannot_be_is_refused(parts, body, code) -> None:
    answer = put(parts, body)
    assert (answer.code, bool(answer.remark)) == (code, True)
    assert not parts.groups.exists("billing")


@pytest.mark.parametrize("cleans", [True, False])
async def test_a_deleted_group_keeps_its_progress_unless_that_is_to_go_too(parts, cleans) -> None:
    put(parts, write_body(BILLING))
    parts.offsets.reset("billing", "orders", 0, 7)
    parts.watch.pulled("billing", "orders", 0, "me@1")
    answer = delete(parts, groupName="billing", cleanOffset=str(cleans).lower())
    assert answer.code == ResponseCode.SUCCESS
    assert not parts.groups.exists("billing")
    assert list(parts.watch.assignments.of_group("billing")) == []
    assert parts.offsets.committed("billing", "orders", 0) == (None if cleans else 7)
    assert parts.offsets.has_reset("billing", "orders", 0) is not cleans


async def test_deleting_a_group_that_is_not_there_succeeds(parts) -> None:
    assert delete(parts, groupName="never").code == ResponseCode.SUCCESS
