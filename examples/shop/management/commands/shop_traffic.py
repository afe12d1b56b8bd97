"""`manage.py shop_traffic`: sends orders at a steady rate until it is stopped."""

from __future__ import annotations

import itertools
import random
import signal
import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from consumer import producer
from consumer.conf import namesrv
from examples.shop.orders import next_order
from remoting.client.errors import ClientError
from remoting.shutdown_signal import ShutdownSignal

TOPIC = "orders"
REPORT_INTERVAL_S = 60.0
RETRY_AFTER_S = 2.0


class Command(BaseCommand):
    help = "Sends the example shop's orders until it is stopped."
    requires_system_checks: list[str] = ["consumer"]  # noqa: RUF012 - those of pages would import every view

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--rate", type=float, default=5.0, help="messages a second (5)")
        parser.add_argument("--count", type=int, default=None, help="stop after so many")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["rate"] <= 0:
            raise CommandError(f"--rate is {options['rate']}: give a number above 0")
        stop = ShutdownSignal()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        self.stdout.write(f"the shop sends {options['rate']:g} orders a second to topic {TOPIC} on {namesrv()}")
        sent = self._send(options["rate"], options["count"], stop)
        self.stdout.write(f"the shop closed after {sent} orders")

    def _send(self, rate: float, count: int | None, stop: ShutdownSignal) -> int:
        chance = random.Random()
        # Larger than all numbers of an earlier run.
        numbers = itertools.count(int(time.time()) * 100)
        sent = 0
        reported_s = due_s = time.monotonic()
        while not stop.is_set and sent != count:
            if self._send_one(next(numbers), chance):
                sent += 1
                due_s = max(due_s + 1 / rate, time.monotonic() - 1)
            else:
                due_s = time.monotonic() + RETRY_AFTER_S
            if time.monotonic() - reported_s >= REPORT_INTERVAL_S:
                reported_s = time.monotonic()
                self.stdout.write(f"{sent} orders so far")
            stop.wait_in_thread(max(0.0, due_s - time.monotonic()))
        return sent

    def _send_one(self, number: int, chance: random.Random) -> bool:
        order = next_order(number, chance)
        try:
            # All steps of an order go to one queue, so that listeners can have them in order.
            key = f"order-{order.number}"
            producer.send(TOPIC, order.body, tags=order.step, keys=key, order_key=key)
        except ClientError as error:
            self.stderr.write(f"order {order.number} was not sent: {error}")
            return False
        return True
