"""The broker killed in the midst of delivering timers: every one comes once and never early, a recalled one never."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.frames import FrameReader, encode_frame
from remoting.wire.properties import encode_properties
from remoting.wire.stored_message import StoredMessage, decode_messages
from tests.support.asking import ask
from tests.support.our_broker import OurBroker
from tests.support.waiting import wait_until

pytestmark = pytest.mark.crash

# At least so many; more until a kill fell into a delivery, which a busy machine may miss several times.
ROUNDS = 3
ROUNDS_MAX = 10
MESSAGES_PER_ROUND = 2_000
# Every tenth is recalled: none of them may fall due before all the recalls are sent.
RECALLED_EVERY = 10
FIRST_DUE_MS = 3_000
SPREAD_MS = 1_000


class Sender:
    """One connection; asks many at once."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._connection = socket.create_connection((host, int(port)), 10)
        self._reader = FrameReader()

    def __enter__(self) -> Sender:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def ask_all(self, commands: list[Command]) -> list[Command]:
        answers: dict[int, Command] = {}
        for start in range(0, len(commands), 100):
            batch = commands[start : start + 100]
            for opaque, command in enumerate(batch, start=start):
                command.opaque = opaque
            self._connection.sendall(b"".join(encode_frame(command) for command in batch))
            while len(answers) < start + len(batch):
                answers |= {answer.opaque: answer for answer in self._reader.feed(self._connection.recv(65536))}
        return [answers[opaque] for opaque in range(len(commands))]


def send_round(address: str, number: int) -> dict[bytes, int]:
    """The bodies, counting on over the rounds, with their due times in ms; of those that were recalled, -1."""
    values = dict(zip("abcdefgh", ("p", "late", "TBW102", "1", "0", "0", "0", "0"), strict=True))
    base_ms = int(time.time() * 1000) + FIRST_DUE_MS
    dues = {
        b"%d" % body: base_ms + body * 7 % SPREAD_MS
        for body in range(number * MESSAGES_PER_ROUND, (number + 1) * MESSAGES_PER_ROUND)
    }
    sends = [
        Command(
            code=RequestCode.SEND_MESSAGE_V2,
            ext_fields=values
            | {"i": encode_properties({"UNIQ_KEY": f"K{body.decode()}", "TIMER_DELIVER_MS": str(due_ms)})},
            body=body,
        )
        for body, due_ms in dues.items()
    ]
    recalled = [body for body in dues if int(body) % RECALLED_EVERY == 0]
    with Sender(address) as sender:
        answers = sender.ask_all(sends)
        assert {answer.code for answer in answers} == {ResponseCode.SUCCESS}
        handles = {body: answer.ext_fields["recallHandle"] for body, answer in zip(dues, answers, strict=True)}
        recalls = [
            Command(code=RequestCode.RECALL_MESSAGE, ext_fields={"topic": "late", "recallHandle": handles[body]})
            for body in recalled
        ]
        assert {answer.code for answer in sender.ask_all(recalls)} == {ResponseCode.SUCCESS}
    return dues | dict.fromkeys(recalled, -1)


def delivered(address: str) -> list[StoredMessage]:
    messages: list[StoredMessage] = []
    while True:
        fields = {
            "consumerGroup": "g",
            "topic": "late",
            "queueId": "0",
            "queueOffset": str(len(messages)),
            "maxMsgNums": "32",
            "sysFlag": "4",
            "commitOffset": "0",
            "suspendTimeoutMillis": "0",
            "subscription": "*",
            "subVersion": "0",
        }
        answer = ask(address, Command(code=RequestCode.PULL_MESSAGE, ext_fields=fields))
        if answer.code != ResponseCode.SUCCESS:
            return messages
        messages += decode_messages(answer.body)


def delivered_count(address: str) -> int:
    fields = {"topic": "late", "queueId": "0"}
    return int(ask(address, Command(code=RequestCode.GET_MAX_OFFSET, ext_fields=fields)).ext_fields["offset"])


@pytest.mark.parametrize("flush", ["sync", "async"])
def test_timers_come_once_and_never_early_and_recalled_ones_never_over_kills(tmp_path: Path, flush: str) -> None:
    dues: dict[bytes, int] = {}
    per_round = MESSAGES_PER_ROUND - MESSAGES_PER_ROUND // RECALLED_EVERY
    counts_at_kills: list[int] = []
    with OurBroker(tmp_path / "store", flush) as broker:
        for number in range(ROUNDS_MAX):
            if number >= ROUNDS and any(count % per_round for count in counts_at_kills):
                break
            dues |= send_round(broker.broker, number)
            before = number * per_round
            counts_at_kills.append(
                wait_until(lambda before=before: (count := delivered_count(broker.broker)) > before and count, 20)
            )
            broker.kill()
            broker.start()
            rest = before + per_round
            wait_until(lambda rest=rest: delivered_count(broker.broker) >= rest, 20, "the rest of this round")
        time.sleep(0.5)
        messages = delivered(broker.broker)

    assert sorted(int(message.body) for message in messages) == sorted(
        int(body) for body, due_ms in dues.items() if due_ms >= 0
    )
    assert min(message.store_timestamp_ms - dues[message.body] for message in messages) >= 0
    assert any(count % per_round for count in counts_at_kills), "no kill fell into a delivery"
