"""A real Apache RocketMQ for tests: name server and broker, on free ports, with a store of their own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.names import HALF_TOPIC
from tests.support.asking import ask, has_route
from tests.support.children import Child, free_port
from tests.support.java import APACHE_VERSION, QUICK_JVM, apache_jars, java_command
from tests.support.waiting import wait_until

READY_WITHIN_S = 180.0
CLUSTER = "DefaultCluster"
BROKER_NAME = "broker-a"
# The broker also listens two ports below (VIP channel) and one above (replication).
_BROKER_NEIGHBOURS = (-2, 1)
_MIB = 1024 * 1024


class ApacheRocketMQ:
    """Starts on entering, is gone on leaving. `namesrv` and `broker` are "host:port".

    `settings` are lines of the broker's own configuration. `announced_host`, another loopback address, is what routes
    give out instead of 127.0.0.1: a proxy in front of the broker listens there, on the broker's own port.
    `version`: one that tests/java/fetch.sh fetches.
    """

    name = "apache"

    def __init__(
        self,
        folder: Path,
        *,
        settings: Mapping[str, str] | None = None,
        jvm: tuple[str, ...] = QUICK_JVM,
        announced_host: str | None = None,
        version: str = APACHE_VERSION,
    ) -> None:
        self.folder = folder
        self.version = version
        self._settings = settings or {}
        self._jvm = jvm
        self._announced_host = announced_host
        self.namesrv = f"127.0.0.1:{free_port()}"
        self.broker = f"127.0.0.1:{free_port(*_BROKER_NEIGHBOURS)}"
        self._namesrv_child: Child | None = None
        self._broker_child: Child | None = None

    def __enter__(self) -> ApacheRocketMQ:
        try:
            return self.start()
        except BaseException:
            self.kill()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def start(self) -> ApacheRocketMQ:
        """Returns when the broker is in the routes. Raises AssertionError with the logs when it does not come."""
        self._prepare()
        self.start_namesrv()
        self.start_broker()
        return self

    def start_namesrv(self) -> None:
        self._namesrv_child = self._launch("namesrv", "org.apache.rocketmq.namesrv.NamesrvStartup")
        wait_until(lambda: self._answers(self._namesrv_child), READY_WITHIN_S, "Apache's name server")

    def start_broker(self) -> None:
        self._broker_child = self._launch("broker", "org.apache.rocketmq.broker.BrokerStartup")
        wait_until(lambda: self._is_routed(), READY_WITHIN_S, "Apache's broker in the routes")

    @property
    def given(self) -> Mapping[str, str]:
        """The settings that its broker is started with."""
        return {**self._broker_settings(), **self._settings}

    @property
    def children(self) -> list[Child]:
        return [child for child in (self._broker_child, self._namesrv_child) if child is not None]

    def kill(self) -> None:
        """At once: its orderly stop takes about 15 s, and nobody reads this store again."""
        for child in self.children:
            child.kill()

    def output(self) -> str:
        return "\n".join(child.output() for child in self.children)

    def _prepare(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.version.startswith("4."):
            # These read their logging from here alone, and don't start without.
            logging = self.folder / "conf"
            logging.mkdir(exist_ok=True)
            for program in ("broker", "namesrv"):
                (logging / f"logback_{program}.xml").write_text("<configuration/>\n")
        _write_properties(self.folder / "namesrv.conf", {"listenPort": self.namesrv.rpartition(":")[2]})
        _write_properties(self.folder / "broker.conf", self.given)

    def _broker_settings(self) -> dict[str, str]:
        store = self.folder / "store"
        host, _, port = self.broker.rpartition(":")
        return {
            "brokerClusterName": CLUSTER,
            "brokerName": BROKER_NAME,
            "brokerId": "0",
            "brokerIP1": self._announced_host or host,
            "bindAddress": host,
            "listenPort": port,
            "haListenPort": str(int(port) + 1),
            "namesrvAddr": self.namesrv,
            "storePathRootDir": str(store),
            "storePathCommitLog": str(store / "commitlog"),
            "mappedFileSizeCommitLog": str(64 * _MIB),
            "autoCreateTopicEnable": "true",
            "enablePropertyFilter": "true",
            "transactionCheckInterval": "5000",
            "recallMessageEnable": "true",
            # Each flush copies the whole wheel, 38 MB: at Apache's default, every second, that is most of what an
            # idle broker does. Of these threads, three each by default, every one looks a hundred times a second.
            "timerFlushIntervalMs": "600000",
            "timerGetMessageThreadNum": "1",
            "timerPutMessageThreadNum": "1",
            # A test machine that is busy for a moment is no overload.
            "brokerFastFailureEnable": "false",
            "osPageCacheBusyTimeOutMills": "600000",
            "waitTimeMillsInSendQueue": "10000",
            "waitTimeMillsInPullQueue": "10000",
            "diskMaxUsedSpaceRatio": "95",
        }

    def _launch(self, program: str, main: str) -> Child:
        command = java_command([apache_jars(self.version)], main, self.folder, self._jvm)
        return Child(
            [*command, "-c", str(self.folder / f"{program}.conf")],
            self.folder / f"{program}.log",
            cwd=self.folder,
            env={"ROCKETMQ_HOME": str(self.folder)},
        )

    def _answers(self, child: Child | None) -> bool:
        if child is None or not child.is_running:
            raise AssertionError(f"Apache's name server did not come up:\n{self.output()}")
        return "boot success" in child.output()

    def _is_routed(self) -> bool:
        if self._broker_child is None or not self._broker_child.is_running:
            raise AssertionError(f"Apache's broker did not come up:\n{self.output()}")
        # A broker of the 4 line makes the topic of half messages when it first checks transactions, up to five seconds
        # after its start, and then registers all topics anew: what a tool changed in the routes until then is undone.
        # In its first second it refuses to tell of its run: it has no figures yet.
        return has_route(self.namesrv, HALF_TOPIC) and self._tells_of_its_run()

    def _tells_of_its_run(self) -> bool:
        try:
            answer = ask(self.broker, Command(code=RequestCode.GET_BROKER_RUNTIME_INFO))
        except OSError:
            return False
        return answer.code == ResponseCode.SUCCESS


def _write_properties(path: Path, settings: Mapping[str, str]) -> None:
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
