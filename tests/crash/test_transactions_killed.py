"""The broker killed under a load of transactions: the committed ones come once, the others never, and it asks."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from remoting.wire.bodies.document import write_body
from remoting.wire.bodies.heartbeat import HeartbeatData, ProducerData
from remoting.wire.codes import ONEWAY_FLAG, RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.frames import FrameReader, encode_frame
from remoting.wire.message_id import decode_offset_message_id
from remoting.wire.properties import encode_properties
from remoting.wire.stored_message import decode_message
from tests.support.our_broker import OurBroker
from tests.support.reading import all_messages, message_count
from tests.support.waiting import wait_until

pytestmark = pytest.mark.crash

KILLS = 6
IN_FLIGHT = 32
COMMIT, ROLLBACK = 8, 12
GROUP, TOPIC = "shop", "paid"
SETTLED_WITHIN_S = 150.0
# Rounds of checks that ask for nothing any more: all is decided, and what comes twice has come.
QUIET_S = 4.0
CHECKS = ("--transaction-timeout=1", "--transaction-check-interval=1", "--transaction-check-max=1000")


class Shop:
    """A producer that decides each order for good when its half was acknowledged, and says so. What it says, and what
    it is asked, may be lost. Runs in a thread of its own until `stop`."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.chance = random.Random(7)
        self.decided: dict[bytes, bool] = {}
        self.asked_count = 0
        self.heard_s = time.monotonic()
        self.is_sending = True
        self._number = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="shop", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(60)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._trade()
            except OSError:
                time.sleep(0.05)  # killed; the next one comes soon

    def _trade(self) -> None:
        """Over one connection, until it breaks."""
        host, _, port = self.address.rpartition(":")
        with socket.create_connection((host, int(port)), 5) as connection:
            connection.settimeout(0.2)
            connection.sendall(encode_frame(_heartbeat()))
            reader, sent = FrameReader(), {}
            while not self._stopping.is_set():
                if self.is_sending:
                    while len(sent) < IN_FLIGHT:
                        self._number += 1
                        sent[self._number] = body = b"%d" % self._number
                        connection.sendall(encode_frame(_half(self._number, body)))
                try:
                    data = connection.recv(65_536)
                except TimeoutError:
                    continue
                if not data:
                    raise ConnectionResetError
                for command in reader.feed(data):
                    self._take(connection, command, sent)

    def _take(self, connection: socket.socket, command: Command, sent: dict[int, bytes]) -> None:
        self.heard_s = time.monotonic()
        if command.is_response:
            body = sent.pop(command.opaque, None)
            if body is None or command.code != ResponseCode.SUCCESS:
                return
            is_commit = self.decided.setdefault(body, self.chance.random() < 0.7)
            place = decode_offset_message_id(command.ext_fields["msgId"])[1]
            # One in five forgets to say it, and one in ten says it twice.
            for _ in range(self.chance.choice([0, 0, 1, 1, 1, 1, 1, 1, 1, 2])):
                connection.sendall(encode_frame(_end(command.ext_fields["queueOffset"], place, is_commit)))
        elif command.code == RequestCode.CHECK_TRANSACTION_STATE:
            self.asked_count += 1
            fields = command.ext_fields
            # A half of which it never heard was killed before its answer: what it says now is its decision.
            is_commit = self.decided.setdefault(decode_message(command.body).body, False)
            connection.sendall(
                encode_frame(_end(fields["tranStateTableOffset"], int(fields["commitLogOffset"]), is_commit))
            )


def _heartbeat() -> Command:
    data = HeartbeatData(client_id="shop-1", producer_data_set=[ProducerData(group_name=GROUP)])
    return Command(code=RequestCode.HEART_BEAT, opaque=0, body=write_body(data))


def _half(number: int, body: bytes) -> Command:
    properties = {"TRAN_MSG": "true", "PGROUP": GROUP, "UNIQ_KEY": f"{number:032X}"}
    now_ms = str(time.time_ns() // 1_000_000)
    values = dict(zip("abcdefgh", (GROUP, TOPIC, "TBW102", "1", "0", "4", now_ms, "0"), strict=True))
    fields = values | {"i": encode_properties(properties)}
    return Command(code=RequestCode.SEND_MESSAGE_V2, opaque=number, ext_fields=fields, body=body)


def _end(queue_offset: str, commit_log_offset: int, is_commit: bool) -> Command:
    fields = {
        "producerGroup": GROUP,
        "tranStateTableOffset": queue_offset,
        "commitLogOffset": str(commit_log_offset),
        "commitOrRollback": str(COMMIT if is_commit else ROLLBACK),
        "fromTransactionCheck": "true",
        "msgId": "",
    }
    return Command(code=RequestCode.END_TRANSACTION, flag=ONEWAY_FLAG, ext_fields=fields)


@pytest.mark.parametrize("flush", ["sync", "async"])
def test_transactions_end_once_over_kills(tmp_path: Path, flush: str) -> None:
    with OurBroker(tmp_path / "store", flush, arguments=CHECKS) as broker:
        shop = Shop(broker.broker)
        try:
            for _ in range(KILLS):
                before = len(shop.decided)
                wait_until(lambda before=before: len(shop.decided) > before + 300, what="a load")
                broker.kill()
                broker.start()
            shop.is_sending = False
            wanted = lambda: sum(shop.decided.values())  # noqa: E731

            def is_settled() -> bool:
                is_quiet = time.monotonic() - shop.heard_s > QUIET_S
                return is_quiet and message_count(broker.broker, TOPIC) >= wanted()

            wait_until(is_settled, SETTLED_WITHIN_S, "every committed one")
            found = Counter(message.body for message in all_messages(broker.broker, TOPIC))
        finally:
            shop.stop()

    assert found == Counter(body for body, is_commit in shop.decided.items() if is_commit)
    assert shop.asked_count > 0, "nobody was asked"
