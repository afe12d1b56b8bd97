"""Captures the golden files again: real clients through a recording proxy to a real Apache RocketMQ 5.4.0.

    tests/java/fetch.sh && python -m tests.golden.capture        about three minutes, one JVM pair at a time

Writes `frames/<client>/<REQUEST_CODE>.json` and `stored_messages.json` beside itself; see README.md.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from remoting.wire.codes import LanguageCode, RequestCode, request_name
from remoting.wire.command import Command
from tests.golden.recording import Recorded, RecordingProxy
from tests.support.apache import ApacheRocketMQ
from tests.support.asking import ask
from tests.support.children import free_port
from tests.support.java import QUICK_JVM
from tests.support.java_client import JavaClient, JavaError
from tests.support.waiting import wait_until

HERE = Path(__file__).parent
# Another loopback address on the broker's own port: that is what routes give out, and where the proxy listens.
PROXY_HOST = "127.0.0.2"
EXCHANGES_PER_CODE_MAX = 8
FRAME_BYTES_KEPT_MAX = 12_000
STORED_PER_KIND_MAX = 2
MESSAGE_MAGIC = 0xDAA320A7
BINARY = ("-Drocketmq.serialize.type=ROCKETMQ",)


class Bench:
    """One Apache RocketMQ behind two proxies."""

    def __init__(self, folder: Path, *, binary_headers: bool) -> None:
        self.folder = folder
        jvm = (*QUICK_JVM, *BINARY) if binary_headers else QUICK_JVM
        # The CRC property on every record as well, so that both layouts are captured.
        settings = {"enabledAppendPropCRC": "true"} if binary_headers else {}
        self.apache = ApacheRocketMQ(folder / "apache", settings=settings, jvm=jvm, announced_host=PROXY_HOST).start()
        broker_port = int(self.apache.broker.rpartition(":")[2])
        namesrv_port = int(self.apache.namesrv.rpartition(":")[2])
        self._proxies = [
            RecordingProxy((PROXY_HOST, free_port()), ("127.0.0.1", namesrv_port)),
            RecordingProxy((PROXY_HOST, broker_port), ("127.0.0.1", broker_port)),
        ]
        self.namesrv = self._proxies[0].address
        self.broker = self._proxies[1].address

    def exchanges(self) -> list[tuple[Recorded, Recorded | None]]:
        return [pair for proxy in self._proxies for pair in paired(proxy.recorded())]

    def commit_log(self) -> bytes:
        files = sorted((self.apache.folder / "store/commitlog").iterdir())
        return files[0].read_bytes()

    def close(self) -> None:
        for proxy in self._proxies:
            proxy.close()
        self.apache.kill()


def paired(recorded: list[Recorded]) -> Iterator[tuple[Recorded, Recorded | None]]:
    """Each request with its response: the same connection, the other direction, the same opaque."""
    responses = {}
    for item in recorded:
        command = item.command()
        if command.is_response:
            responses[item.connection, item.is_from_client, command.opaque] = item
    for item in recorded:
        command = item.command()
        if not command.is_response:
            yield item, responses.get((item.connection, not item.is_from_client, command.opaque))


# What each client does


def drive_java(java: JavaClient, bench: Bench) -> None:
    """Every request of the first loop, from one Java client."""
    java.producer("p", "golden-producers")
    java.send("p", "golden", count=2, tag="TagA", keys="key", property_name="häuser", property_value="grün ✓")
    java.send("p", "golden", count=1, mode="async", tag="TagB")
    java.send("p", "golden", count=1, mode="oneway")
    java.send("p", "golden", count=3, mode="batch", tag="TagA", keys="batch")
    java.send("p", "golden", count=1, size=6000, body="compressed")
    java.send("p", "golden", count=1, delay_level=1)
    client_id = java.consumer("c", "golden-group", "golden", expression="TagA || TagB", fail_until=1)
    # Three of the batch, two and one with tags; each fails once and comes back after 10 s.
    java.wait_consumed(12, "c")
    second = java.consumer("c2", "golden-group", "golden", expression="TagA || TagB", fail_until=1)
    wait_until(lambda: java.queues("c2", "golden"), what="queues of the second member")
    for what in ("route", "clusters", "topics", "max_offset", "min_offset", "search_offset"):
        java.admin(what, topic="golden", queue=0, timestamp=int(time.time() * 1000) - 60_000)
    java.admin("connections", group="golden-group")
    java.admin("consume_stats", group="golden-group")
    java.admin("running_info", group="golden-group", client_id=client_id)
    java.admin("running_info", group="golden-group", client_id=second)
    for refused in (
        lambda: java.admin("route", topic="golden-missing"),
        lambda: java.admin("connections", group="golden-nobody"),
        lambda: java.admin("running_info", group="golden-group", client_id="golden-nobody"),
    ):
        expect_refusal(refused)
    wait_for_answered_pull(bench)
    for name in ("c2", "c", "p"):
        java.stop(name)


def expect_refusal(ask_java: Callable[[], Any]) -> None:
    try:
        ask_java()
    except JavaError:
        return
    raise AssertionError("Apache should have refused this")


def wait_for_answered_pull(bench: Bench) -> None:
    """Until a held pull came back empty: the client asks the broker to hold it for 15 s."""
    codes = {"PULL_NOT_FOUND"}

    def is_there() -> bool:
        return any(
            request.command().code == RequestCode.PULL_MESSAGE and str(response.command()).split()[1] in codes
            for request, response in bench.exchanges()
            if response is not None
        )

    wait_until(is_there, what="an empty pull")


def drive_plain_sends(java: JavaClient, bench: Bench) -> None:
    """SEND_MESSAGE with the long names, which Java's client uses only when told to."""
    java.producer("p", "golden-producers")
    java.send("p", "golden", count=1, tag="TagA", keys="key")
    java.stop("p")


def drive_native(bench: Bench) -> None:
    """librocketmq: what C++ writes, numbers in extFields included."""
    script = Path(__file__).parents[1] / "support/librocketmq_process.py"
    for action, count, extra in (("send", 3, 0), ("consume", 4, 1)):
        command = [sys.executable, script, action, bench.namesrv, "golden-native", "golden", str(count), str(extra)]
        subprocess.run([str(word) for word in command], check=True, timeout=90, stdout=subprocess.DEVNULL)


def ask_badly(bench: Bench) -> None:
    """Refusals that no orderly client provokes."""
    queue = {"topic": "golden", "queueId": "0"}
    for fields in (
        {"code": 4711},
        {"code": RequestCode.QUERY_CONSUMER_OFFSET, "ext_fields": {**queue, "consumerGroup": "golden-nobody"}},
        {"code": RequestCode.PULL_MESSAGE, "ext_fields": _pull(queue, "golden-unsubscribed", 0)},
        {"code": RequestCode.PULL_MESSAGE, "ext_fields": _pull(queue, "golden-unsubscribed", 999, flags=4)},
        {"code": RequestCode.GET_MAX_OFFSET, "ext_fields": {"topic": "golden"}},
    ):
        ask(bench.broker, Command(language=LanguageCode.PYTHON, **fields))


def _pull(queue: dict[str, str], group: str, queue_offset: int, flags: int = 0) -> dict[str, str]:
    return {
        **queue,
        "consumerGroup": group,
        "queueOffset": str(queue_offset),
        "maxMsgNums": "8",
        "sysFlag": str(flags),
        "commitOffset": "0",
        "suspendTimeoutMillis": "1000",
        "subscription": "*",
        "subVersion": "0",
        "expressionType": "TAG",
    }


# What is kept


def kind(is_from_client: bool, request: Command, response: Command | None) -> tuple[Any, ...]:
    """Two exchanges of one kind teach the same."""
    has_subscriptions = b'"subscriptionDataSet"' in bytes(request.body)
    asked = (is_from_client, tuple(sorted(request.ext_fields)), request.flag, has_subscriptions)
    if response is None:
        return asked
    return (
        *asked,
        response.code,
        tuple(sorted(response.ext_fields)),
        bool(response.body),
    )


def write_frames(client: str, exchanges: list[tuple[Recorded, Recorded | None]]) -> None:
    folder = HERE / "frames" / client
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    kept: dict[str, dict[Any, dict[str, Any]]] = {}
    for request, response in exchanges:
        command, answer = request.command(), response.command() if response else None
        of_code = kept.setdefault(request_name(command.code).replace(" ", "_"), {})
        entry = _entry(request, response, command, answer)
        if len(of_code) < EXCHANGES_PER_CODE_MAX and len(str(entry)) < 2 * FRAME_BYTES_KEPT_MAX:
            of_code.setdefault(kind(request.is_from_client, command, answer), entry)
    for name, of_code in kept.items():
        (folder / f"{name}.json").write_text(json.dumps(list(of_code.values()), indent=1) + "\n")
    print(f"{client}: {', '.join(f'{name} {len(of_code)}' for name, of_code in sorted(kept.items()))}")


def _entry(request: Recorded, response: Recorded | None, command: Command, answer: Command | None) -> dict[str, Any]:
    return {
        "asked_by": "client" if request.is_from_client else "broker",
        "shows": f"{command} {answer or ''}".strip(),
        "request": request.frame.hex(),
        "response": response.frame.hex() if response else None,
    }


def stored_records(commit_log: bytes) -> Iterator[bytes]:
    """Records of the first commit-log file, up to the blank that ends it."""
    position = 0
    while position + 8 <= len(commit_log):
        size = int.from_bytes(commit_log[position : position + 4], "big")
        if size == 0 or int.from_bytes(commit_log[position + 4 : position + 8], "big") != MESSAGE_MAGIC:
            return
        yield commit_log[position : position + size]
        position += size


def stored_kind(record: bytes) -> tuple[Any, ...]:
    """By sysFlag, topic and the names of the properties."""
    sys_flag = int.from_bytes(record[36:40], "big")
    body_end = 88 + int.from_bytes(record[84:88], "big")
    topic_end = body_end + 1 + record[body_end]
    properties = record[topic_end + 2 :].split(b"\x02")
    names = tuple(sorted(part.split(b"\x01")[0] for part in properties if part))
    return (sys_flag, record[body_end + 1 : topic_end].decode(), names)


def write_stored(records: list[tuple[str, bytes]]) -> None:
    kept: dict[Any, list[dict[str, Any]]] = {}
    for client, record in records:
        of_kind = kept.setdefault(stored_kind(record), [])
        if len(of_kind) < STORED_PER_KIND_MAX:
            sys_flag, topic, names = stored_kind(record)
            shows = f"{topic} sysFlag={sys_flag} {' '.join(name.decode() for name in names)}"
            of_kind.append({"written_by": client, "shows": shows, "record": record.hex()})
    entries = [entry for of_kind in kept.values() for entry in of_kind]
    (HERE / "stored_messages.json").write_text(json.dumps(entries, indent=1, ensure_ascii=False) + "\n")
    print(f"{len(entries)} stored messages")


def capture(client: str, folder: Path, drive: Callable[[Bench], None], *, binary_headers: bool = False) -> list[bytes]:
    bench = Bench(folder, binary_headers=binary_headers)
    try:
        drive(bench)
        write_frames(client, bench.exchanges())
        return list(stored_records(bench.commit_log()))
    finally:
        bench.close()


def by_java(
    version: str, drive: Callable[[JavaClient, Bench], None], *, jvm: tuple[str, ...] = (), binary_headers: bool = False
) -> Callable[[Bench], None]:
    def run(bench: Bench) -> None:
        with JavaClient(
            version, bench.folder / "client", bench.namesrv, jvm=(*QUICK_JVM, *jvm), binary_headers=binary_headers
        ) as java:
            drive(java, bench)
        if not binary_headers and not jvm:
            ask_badly(bench)

    return run


def main() -> None:
    records: list[tuple[str, bytes]] = []
    plain = ("-Dorg.apache.rocketmq.client.sendSmartMsg=false",)
    runs: list[tuple[str, Callable[[Bench], None], bool]] = [
        ("java-5.4.0-json", by_java("5.4.0", drive_java), False),
        ("java-4.9.8-json", by_java("4.9.8", drive_java), False),
        ("java-5.4.0-binary", by_java("5.4.0", drive_java, binary_headers=True), True),
        ("java-5.4.0-plain-sends", by_java("5.4.0", drive_plain_sends, jvm=plain), False),
        ("librocketmq-json", drive_native, False),
    ]
    chosen = sys.argv[1:]
    for client, drive, binary_headers in runs:
        if chosen and client not in chosen:
            continue
        with tempfile.TemporaryDirectory() as folder:
            for record in capture(client, Path(folder), drive, binary_headers=binary_headers):
                records.append((client, record))
    if not chosen:
        write_stored(records)


if __name__ == "__main__":
    main()
