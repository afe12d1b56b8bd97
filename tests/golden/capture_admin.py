"""Captures the answers of Apache's brokers and name servers to the admin client's requests again.

    tests/java/fetch.sh && python -m tests.golden.capture_admin        about two minutes

Runs the tests of tests/journeys/test_admin_calls.py against each version and keeps per request code the first answer
with a body or fields, in `admin/<version>.json`; the body is text in Latin-1, so that it stands for bytes.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import json
import tempfile
from pathlib import Path
from typing import Any

from remoting.client.admin import Admin
from remoting.client.connections import REQUEST_TIMEOUT_MS
from remoting.client.instance import ClientInstance, local_address
from remoting.client.producer import Producer
from remoting.wire.codes import RequestCode, request_name
from remoting.wire.command import Command
from tests.journeys import test_admin_calls as journey
from tests.support.apache import ApacheRocketMQ
from tests.support.java import APACHE_VERSION, OLD_APACHE_VERSION

HERE = Path(__file__).parent / "admin"
ANSWER_BYTES_KEPT_MAX = 40_000
# Stored messages have golden bytes of their own, and clients do these, not tools.
LEFT_OUT = {
    *(RequestCode.PULL_MESSAGE, RequestCode.QUERY_MESSAGE, RequestCode.VIEW_MESSAGE_BY_ID),
    *(RequestCode.HEART_BEAT, RequestCode.SEND_MESSAGE_V2),
}
# In place of what is this machine's own.
FOLDER, ADDRESS = "/home/rocketmq", "10.0.0.9"


def record_answers(instance: ClientInstance) -> dict[str, dict[str, Any]]:
    """Returns a table that fills with what this instance is answered from now on."""
    answers: dict[str, dict[str, Any]] = {}
    request = instance.connections.request

    async def recorded(address: str, command: Command, timeout_ms: int = REQUEST_TIMEOUT_MS) -> Command:
        answer = await request(address, command, timeout_ms)
        name, kept = request_name(command.code), len(answer.body) <= ANSWER_BYTES_KEPT_MAX
        if answer.code == 0 and command.code not in LEFT_OUT and kept and (answer.body or answer.ext_fields):
            answers.setdefault(name, {"fields": answer.ext_fields, "body": bytes(answer.body).decode("latin-1")})
        return answer

    instance.connections.request = recorded  # type: ignore[method-assign]
    return answers


async def answers_of(cluster: ApacheRocketMQ, kind: str) -> dict[str, dict[str, Any]]:
    numbers = itertools.count(1)
    answers: dict[str, dict[str, Any]] = {}
    for name, test in inspect.getmembers(journey, inspect.iscoroutinefunction):
        if not name.startswith("test_"):
            continue
        instance = ClientInstance(cluster.namesrv)
        instance.start()
        recorded = record_answers(instance)
        producer = Producer(cluster.namesrv, "admins", instance=instance, timeout_ms=10_000)
        await producer.start()
        admin = Admin(instance.connections, timeout_ms=15_000)
        await test(
            journey.House(
                kind,
                cluster.namesrv,
                cluster.broker,
                admin,
                instance,
                producer,
                lambda word: f"{word}-{next(numbers)}",
            )
        )
        await producer.close()
        await instance.close()
        answers = {**recorded, **answers}
    return answers


def main() -> None:
    HERE.mkdir(exist_ok=True)
    for version, kind in ((APACHE_VERSION, journey.APACHE), (OLD_APACHE_VERSION, journey.OLD)):
        with (
            tempfile.TemporaryDirectory() as folder,
            ApacheRocketMQ(Path(folder) / "apache", version=version) as cluster,
        ):
            answers = asyncio.run(answers_of(cluster, kind))
            text = json.dumps(answers, indent=1, sort_keys=True)
            text = text.replace(folder, FOLDER).replace(local_address(), ADDRESS).replace(str(Path.home()), FOLDER)
        (HERE / f"{version}.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
