"""Groups: made when first named, kept in RocketMQ's own file."""

from __future__ import annotations

import pytest

from broker.engine.config import BrokerConfig
from broker.engine.groups.group_configs import Groups
from remoting.complaints import ComplaintLog
from remoting.wire.bodies.groups import SubscriptionGroupConfig
from remoting.wire.errors import MessageError


def groups_in(folder, changed=None, **config) -> Groups:
    changed = [] if changed is None else changed
    groups = Groups(folder / "config", BrokerConfig(store=folder, **config), changed.append, ComplaintLog())
    groups.load()
    return groups


def test_a_group_is_made_when_first_named_and_stays(tmp_path) -> None:
    changed: list[str] = []
    groups = groups_in(tmp_path, changed)
    assert not groups.exists("billing")
    assert groups.find("billing").retry_max_times == 16
    assert changed == ["billing"]
    assert groups_in(tmp_path).exists("billing")


@pytest.mark.parametrize("name", ["", "a b", "x" * 121])
def test_a_group_with_an_illegal_name_is_never_made(tmp_path, name) -> None:
    groups = groups_in(tmp_path)
    assert groups.find(name) is None
    with pytest.raises(MessageError, match="group name"):
        groups.put([SubscriptionGroupConfig(group_name=name)], lambda refusal: None)


def test_a_group_is_not_made_where_that_is_switched_off(tmp_path) -> None:
    assert groups_in(tmp_path, creates_groups=False).find("billing") is None


async def test_a_changed_group_keeps_its_change(tmp_path) -> None:
    groups = groups_in(tmp_path)
    refusals: list[Exception | None] = []
    groups.put([SubscriptionGroupConfig(group_name="billing", retry_max_times=3)], refusals.append)
    groups.file.flush()
    assert refusals == [None]
    assert groups_in(tmp_path).find("billing").retry_max_times == 3


def test_a_deleted_group_is_gone(tmp_path) -> None:
    groups = groups_in(tmp_path)
    groups.find("billing")
    assert groups.delete("billing") is True
    assert groups.delete("billing") is False
    assert not groups_in(tmp_path).exists("billing")


def test_a_group_that_cannot_be_written_down_is_not_known(tmp_path) -> None:
    changed: list[str] = []
    groups = groups_in(tmp_path, changed)
    (tmp_path / "config" / "subscriptionGroup.json.changes").mkdir()
    with pytest.raises(MessageError, match=r"subscriptionGroup\.json cannot be written: Is a directory"):
        groups.find("billing")
    assert (groups.exists("billing"), changed) == (False, [])


def test_tools_can_pull_without_a_heartbeat(tmp_path) -> None:
    assert groups_in(tmp_path, creates_groups=False).exists("TOOLS_CONSUMER")
