"""A name server and a broker with settings, over real sockets."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mqadmin.clusters.models import Cluster
from remoting.connection import Connection
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.java_properties import read_properties, write_properties
from tests.support import console_rows as seed
from tests.support.topic_brokers import TopicBrokers


class Settings(dict[str, str]):
    """What the broker is set to. It takes a change of every name, and keeps to itself that it does not change all."""

    fixed = ("listenPort",)
    refusal = ""

    def read(self, _: Connection, request: Command) -> Command:
        return response(request, ResponseCode.SUCCESS, body=write_properties(self).encode())

    def change(self, _: Connection, request: Command) -> Command:
        if self.refusal:
            return response(request, ResponseCode.NO_PERMISSION, self.refusal)
        wanted = read_properties(bytes(request.body).decode())
        self.update({name: text for name, text in wanted.items() if name in self and name not in self.fixed})
        return response(request, ResponseCode.SUCCESS)


@pytest.fixture
def settings_of_broker() -> Settings:
    return Settings(fileReservedTime="72", listenPort="10911", autoCreateTopicEnable="true")


@pytest.fixture
def brokers(settings_of_broker: Settings) -> Iterator[TopicBrokers]:
    with TopicBrokers("broker-a") as brokers:
        answers = brokers["broker-a"].server.answers
        answers[RequestCode.GET_BROKER_CONFIG] = settings_of_broker.read
        answers[RequestCode.UPDATE_BROKER_CONFIG] = settings_of_broker.change
        yield brokers


@pytest.fixture
def cluster(db: None, brokers: TopicBrokers) -> Cluster:
    return seed.make_cluster_of(brokers.namesrv, brokers.brokers)
