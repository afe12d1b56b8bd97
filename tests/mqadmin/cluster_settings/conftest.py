"""A name server with a broker of Apache's and one of ours, somebody who may do everything, and runs of actions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import AbstractUser

from mqadmin.action_runs import runner
from mqadmin.action_runs.runs import Result
from mqadmin.actions import registry
from remoting.wire.codes import RequestCode, ResponseCode
from tests.support.callers import caller
from tests.support.topic_brokers import TopicBrokers

Act = Callable[..., Result]


@pytest.fixture
def brokers() -> Iterator[TopicBrokers]:
    with TopicBrokers("apache", "ours") as brokers:
        for name, broker in brokers.brokers.items():
            version = {"table": {"brokerVersionDesc": "V5_4_0" if name == "apache" else "V5_3_3"}}
            broker.server.succeed(RequestCode.GET_BROKER_RUNTIME_INFO, json.dumps(version).encode())
            knows_watch = name == "ours"
            code = ResponseCode.INVALID_PARAMETER if knows_watch else ResponseCode.REQUEST_CODE_NOT_SUPPORTED
            broker.server.refuse(RequestCode.WATCH, code, "not so")
        yield brokers


@pytest.fixture
def act(ann: AbstractUser) -> Act:
    """Runs an action about the installation, its name typed."""

    def act(action: str, **values: Any) -> Result:
        confirmation = str(values.get(registry.find(action).subject, ""))
        result = runner.run(caller(ann), action, "", values, confirmation=confirmation)
        assert isinstance(result, Result)
        return result

    return act
