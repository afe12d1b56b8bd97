"""The example shop: what docs quote must work."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from examples.shop.mail import CLOSED_MAILBOXES, MailboxClosed, MailServerBusy, send_mail
from examples.shop.orders import MOVED_CUSTOMER, STEPS, next_order

ROOT = Path(__file__).parents[2]


def test_orders_come_in_the_stated_mixture_and_look_like_orders() -> None:
    chance = random.Random(7)
    orders = [next_order(number, chance) for number in range(2000)]
    steps = Counter(order.step for order in orders)
    assert set(steps) == set(STEPS)
    assert steps["refunded"] < steps["paid"]
    assert all(set(order.body) == {"number", "customer", "cents"} and order.cents > 0 for order in orders)


class Chance(random.Random):
    """Always returns `number`."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number

    def randrange(self, *limits: int) -> int:  # type: ignore[override]
        return self._number


async def test_the_mail_server_is_busy_now_and_then() -> None:
    with pytest.raises(MailServerBusy, match="no mail to anna"):
        await send_mail("anna", "Order 1 was paid", 0, chance=Chance(0), delay_s=0)
    await send_mail("anna", "Order 1 was paid", 0, chance=Chance(1), delay_s=0)


async def test_a_mailbox_that_is_closed_stays_closed() -> None:
    with pytest.raises(MailboxClosed, match="zoe has no mailbox"):
        await send_mail(MOVED_CUSTOMER, "Order 1 was paid", 0, delay_s=0)
    assert MOVED_CUSTOMER in CLOSED_MAILBOXES


@pytest.mark.slow
def test_the_shops_listeners_are_declared_and_can_be_called_like_any_function() -> None:
    """In a process of its own: listeners are declared before Django's start, or not at all."""
    script = """
import django
django.setup()
from consumer import Message
from consumer.listener import registry
from examples.shop.listeners import Step, bill, write_down
groups = registry.groups
wanted = {name: spec.options["wanted_instances"] for name, spec in groups.items()}
assert wanted == {"billing": 2, "mailing": 2, "ledger": 0}
assert groups["billing"].listeners["orders"].tags == "paid || refunded"
assert not groups["billing"].listeners["orders"].is_async and groups["mailing"].listeners["orders"].is_async
assert bill(Message(topic="orders", body=b'{"cents": 5}', properties={"TAGS": "paid"})) == 5
assert bill(Message(topic="orders", body=b'{"cents": 5}', properties={"TAGS": "refunded"})) == -5
assert groups["ledger"].options["orderly"]
step = Message(topic="orders", data=Step(7, "anna", 500), properties={"TAGS": "paid"})
assert write_down(step) == "order 7 of anna: paid, 5.00"
"""
    env = {**os.environ, "MQADMIN_APPS": "examples.shop", "DJANGO_SETTINGS_MODULE": "mqadmin.settings"}
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
