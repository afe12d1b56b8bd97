"""Clusters and Java clients that journeys share: started when first asked for, once per session."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from typing import Any, TypeAlias

import pytest

from tests.journeys.contract import RUN_WITHIN_S, ScenarioRuns
from tests.journeys.refusals import Refusals
from tests.journeys.retries import Retries
from tests.journeys.shop import Shop
from tests.support.apache import CLUSTER, ApacheRocketMQ
from tests.support.children import timer_slack
from tests.support.go_client import GoClient
from tests.support.java import OLD_APACHE_VERSION, require_apache, require_driver
from tests.support.java_client import VERSIONS, JavaClient
from tests.support.our_broker import OurBroker
from tests.support.parallel import ENDING, Uses
from tests.support.patience import ANSWER_WITHIN_S, let_console_wait

Cluster: TypeAlias = OurBroker | ApacheRocketMQ
# Apache's processes stand idle most of the time, and look for work up to a thousand times a second: that is half of
# what they cost. A message may be late by it at each broker and client.
IDLE_SLACK_MS = 20
_numbers = itertools.count(1)


@pytest.fixture(autouse=True)
def _patient_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the console's and our members' requests wait for an answer: what becomes of late ones has tests of its own.

    Of those that this process makes.
    """
    let_console_wait(monkeypatch)
    for name in ("CHECK_TIMEOUT_MS", "SEND_BACK_TIMEOUT_MS"):
        monkeypatch.setattr(f"consumer.engine.brokers.{name}", int(ANSWER_WITHIN_S * 1000))


@pytest.fixture(scope="session")
def with_brokers(pytestconfig: pytest.Config) -> ExitStack:
    """Ends what it is given after the last test of this worker that uses Apache's brokers, or with the session."""
    return pytestconfig.stash.setdefault(ENDING, {}).setdefault(Uses.BROKERS, ExitStack())


@pytest.fixture(scope="session")
def with_clients(pytestconfig: pytest.Config) -> ExitStack:
    """The same for Apache's clients."""
    return pytestconfig.stash.setdefault(ENDING, {}).setdefault(Uses.CLIENTS, ExitStack())


def _started(cluster: ApacheRocketMQ, with_brokers: ExitStack) -> Iterator[ApacheRocketMQ]:
    with timer_slack(IDLE_SLACK_MS):
        with_brokers.enter_context(cluster)
    yield cluster
    cluster.kill()


@pytest.fixture(scope="session")
def apache_rocketmq(tmp_path_factory: pytest.TempPathFactory, with_brokers: ExitStack) -> Iterator[ApacheRocketMQ]:
    require_apache()
    yield from _started(ApacheRocketMQ(tmp_path_factory.mktemp("apache")), with_brokers)


@pytest.fixture(scope="session")
def old_apache_rocketmq(tmp_path_factory: pytest.TempPathFactory, with_brokers: ExitStack) -> Iterator[ApacheRocketMQ]:
    require_apache(OLD_APACHE_VERSION)
    yield from _started(ApacheRocketMQ(tmp_path_factory.mktemp("old-apache"), version=OLD_APACHE_VERSION), with_brokers)


@pytest.fixture(scope="session")
def ours_rocketmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OurBroker]:
    with OurBroker(
        tmp_path_factory.mktemp("ours") / "store", arguments=(f"--cluster={CLUSTER}",), patient=True
    ) as cluster:
        yield cluster


# Of function scope on purpose: pytest re-orders tests by parameters of wider scopes.
@pytest.fixture(params=["ours", "apache"])
def cluster(request: pytest.FixtureRequest) -> Cluster:
    """Our broker, then Apache's: a journey must see the same on both."""
    return request.getfixturevalue(f"{request.param}_rocketmq")


@pytest.fixture(params=["ours", "apache", "old_apache"])
def every_cluster(request: pytest.FixtureRequest) -> Cluster:
    """Those of `cluster`, and the oldest Apache RocketMQ that the console works with."""
    return request.getfixturevalue(f"{request.param}_rocketmq")


def _java_process(version: str, folders: pytest.TempPathFactory, with_clients: ExitStack) -> Iterator[JavaClient]:
    require_driver(version)
    with timer_slack(IDLE_SLACK_MS):
        client = with_clients.enter_context(JavaClient(version, folders.mktemp(f"java-{version}")))
    yield client
    client.kill()


@pytest.fixture(scope="session")
def java_process_5_4_0(tmp_path_factory: pytest.TempPathFactory, with_clients: ExitStack) -> Iterator[JavaClient]:
    yield from _java_process("5.4.0", tmp_path_factory, with_clients)


@pytest.fixture(scope="session")
def java_process_4_9_8(tmp_path_factory: pytest.TempPathFactory, with_clients: ExitStack) -> Iterator[JavaClient]:
    yield from _java_process("4.9.8", tmp_path_factory, with_clients)


@pytest.fixture(params=VERSIONS)
def java_process(request: pytest.FixtureRequest) -> JavaClient:
    return request.getfixturevalue(f"java_process_{request.param.replace('.', '_')}")


@pytest.fixture
def java(java_process: JavaClient, cluster: Cluster) -> JavaClient:
    """Apache's Java client, pointed at the cluster."""
    return java_process.on(cluster.namesrv)


@pytest.fixture(scope="session")
def go_processes(
    tmp_path_factory: pytest.TempPathFactory, with_clients: ExitStack
) -> Iterator[Callable[[Cluster], GoClient]]:
    """One per cluster: the Go client sends its traces to the first cluster of its process."""
    started: dict[str, GoClient] = {}

    def process(cluster: Cluster) -> GoClient:
        if cluster.name not in started:
            started[cluster.name] = GoClient(tmp_path_factory.mktemp("go"), cluster.namesrv)
            with_clients.callback(started[cluster.name].kill)
        return started[cluster.name]

    yield process
    for client in started.values():
        client.kill()


@pytest.fixture
def go(go_processes: Callable[[Cluster], GoClient], cluster: Cluster) -> GoClient:
    """Apache's Go client, pointed at the cluster."""
    return go_processes(cluster)


@pytest.fixture
def fresh() -> Callable[[str], str]:
    """A name that no other test of this session uses: `fresh("topic")`."""
    return lambda word: f"{word}-{next(_numbers)}"


@pytest.fixture
async def shop(cluster: Cluster, fresh: Callable[[str], str]) -> AsyncIterator[Shop]:
    opened = Shop(cluster, fresh("shop-orders"), fresh("shop-billing"))
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture(scope="session")
def retries() -> Retries:
    return Retries()


@pytest.fixture(scope="session")
def refusals(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Refusals]:
    begun = Refusals(tmp_path_factory.mktemp("refusals"))
    yield begun
    begun.close()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test of the contract (see contract.py) runs once per client version."""
    if "seen" in metafunc.fixturenames:
        metafunc.parametrize("seen", getattr(metafunc.function, "versions", VERSIONS), indirect=True)


@pytest.fixture(scope="session")
def scenario_runs(
    request: pytest.FixtureRequest,
    ours_rocketmq: OurBroker,
    apache_rocketmq: ApacheRocketMQ,
    java_process_5_4_0: JavaClient,
    java_process_4_9_8: JavaClient,
) -> Iterator[ScenarioRuns]:
    """All scenarios of the tests that were selected are under way."""
    clients = {client.version: client for client in (java_process_5_4_0, java_process_4_9_8)}
    asked_as_often = {"transactionCheckInterval": "5000"}  # as Apache's here
    java_process_5_4_0.on(ours_rocketmq.namesrv).admin_call("updateBrokerConfig", ours_rocketmq.broker, asked_as_often)
    begun = ScenarioRuns(ours_rocketmq, apache_rocketmq, clients)
    for item in request.session.items:
        scenario = getattr(getattr(item, "function", None), "scenario", None)
        if scenario is not None:
            begun.submit(scenario, item.callspec.params["seen"])
    yield begun
    begun.close()


@pytest.fixture
def seen(request: pytest.FixtureRequest, scenario_runs: ScenarioRuns) -> Callable[..., Any]:
    """What the test's scenario observed on Apache's broker: `seen()` asserts that it was the same on ours.

    `seen(but={case: value})`: the same but for these cases of the observation, where ours shows the value on purpose.
    """

    def see(but: dict[str, Any] | None = None) -> Any:
        results = scenario_runs.results_of(request.function.scenario, request.param)
        theirs = results.apache.result(RUN_WITHIN_S)
        ours = results.ours.result(RUN_WITHIN_S)
        assert ours == ({**theirs, **but} if but else theirs), (
            "our broker (left) showed something else than Apache's (right)"
        )
        return theirs

    return see
