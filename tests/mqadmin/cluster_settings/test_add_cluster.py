from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from mqadmin.action_runs import runner
from mqadmin.action_runs.runs import Refusal
from mqadmin.actions.declaration import Preview, Undo
from mqadmin.audit.models import AuditEntry
from mqadmin.clusters.models import Cluster
from tests.support.callers import caller
from tests.support.raw_server import RawServer


def preview(person: Any, namesrv: str, name: str = "prod") -> Preview[Any]:
    return runner.preview(caller(person), "add_cluster", "", {"cluster": name, "namesrv": namesrv})


@pytest.fixture
def stranger() -> Iterator[str]:
    """The address of a server that answers something else, whatever it is asked."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()

    with RawServer(answer) as server:
        yield server.address


def test_the_preview_says_what_is_there(brokers, ann) -> None:
    seen = preview(ann, brokers.namesrv)
    (change,) = seen.changes
    assert change.before == {}
    assert change.after["found"] == "this project's broker + Apache RocketMQ 5.4.0; 2 brokers answer"
    assert change.after["broker_count"] == 2
    assert seen.warnings == ()
    assert not Cluster.objects.exists()


def test_it_is_added_and_audited_and_can_be_taken_back(brokers, act) -> None:
    result = act("add_cluster", cluster="prod", namesrv=f" {brokers.namesrv.upper()}, ", note="of the shop")
    row = Cluster.objects.get()
    assert (row.name, row.namesrv, row.note, row.state) == ("prod", brokers.namesrv, "of the shop", "new")
    entry = AuditEntry.objects.get()
    assert (entry.cluster, entry.subject, entry.outcome, entry.before) == ("", "prod", "done", {})
    assert result.undo == Undo("remove_cluster", {"cluster": "prod"})
    assert act(result.undo.action, **result.undo.arguments).outcome == "done"
    assert not Cluster.objects.exists()


def test_a_broker_that_is_away_is_named(brokers, ann) -> None:
    brokers.vanish("ours")
    seen = preview(ann, brokers.namesrv)
    assert seen.changes[0].after["found"] == "Apache RocketMQ 5.4.0; 1 broker answers"
    assert seen.warnings[0].startswith("The broker ours at 127.0.0.1:")


def test_one_name_server_of_two_that_is_away_is_named(brokers, ann, unused_address) -> None:
    seen = preview(ann, f"{brokers.namesrv};{unused_address}")
    assert seen.changes[0].after["broker_count"] == 2
    assert [words for words in seen.warnings if unused_address in words]


@pytest.fixture
def unused_address() -> str:
    with asyncio.Runner() as runner:

        async def unused() -> str:
            server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
            port = server.sockets[0].getsockname()[1]
            server.close()
            return f"127.0.0.1:{port}"

        return runner.run(unused())


def test_one_that_nobody_answers_for_is_added_all_the_same(ann, act, unused_address) -> None:
    seen = preview(ann, unused_address)
    assert "Connection refused" in seen.warnings[0]
    assert "followed as soon as somebody does" in seen.warnings[-1]
    assert act("add_cluster", cluster="prod", namesrv=unused_address).outcome == "done"


def test_something_else_that_answers_is_said_to_be_that(ann, stranger) -> None:
    seen = preview(ann, stranger)
    assert seen.warnings[0].startswith(f"The name server {stranger} gives no answer that can be read: ")
    assert "found" not in seen.changes[0].after


def test_the_same_name_servers_twice_are_warned_of(brokers, ann, act) -> None:
    act("add_cluster", cluster="prod", namesrv=brokers.namesrv)
    assert "prod is behind the same name servers" in preview(ann, brokers.namesrv, "twin").warnings[0]


def test_a_name_that_is_taken_is_refused_at_its_field(brokers, act) -> None:
    act("add_cluster", cluster="prod", namesrv=brokers.namesrv)
    result = act("add_cluster", cluster="prod", namesrv=brokers.namesrv)
    assert (result.refusal, list(result.errors)) == (Refusal.ARGUMENTS, ["cluster"])
    assert Cluster.objects.count() == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("cluster", "a b"),
        ("cluster", "<b>"),
        ("cluster", "prod\u202e"),
        ("cluster", "_prod"),
        ("cluster", "x" * 101),
        ("cluster", ""),
        ("namesrv", ""),
        ("namesrv", " ; "),
        ("namesrv", "10.0.0.5"),
        ("namesrv", "10.0.0.5:0"),
        ("namesrv", "10.0.0.5:99999999999999999999"),
        ("namesrv", "http://10.0.0.5:9876"),
        ("namesrv", "-x:9876"),
        ("namesrv", "10.0.0.5:9876;<script>:1"),
        ("namesrv", ";".join(f"10.0.0.{n}:9876" for n in range(11))),
        ("note", "x" * 501),
    ],
)
def test_what_cannot_be_is_refused_at_its_field_and_nobody_is_asked(act, field: str, value: str) -> None:
    result = act("add_cluster", **({"cluster": "prod", "namesrv": "127.0.0.1:1"} | {field: value}))
    assert (result.refusal, list(result.errors)) == (Refusal.ARGUMENTS, [field])
    assert not Cluster.objects.exists()
