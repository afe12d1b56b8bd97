"""Random orders for the shop. Pure: the number and the source of random numbers are arguments."""

from __future__ import annotations

import random
from dataclasses import dataclass

# The steps of an order, with their share in percent.
STEPS = {"created": 45, "paid": 45, "refunded": 10}
CUSTOMERS = ("anna", "bo", "chen", "dilip", "elif", "femi", "gita", "hugo")
# Nobody can write to them: mails about their orders are dead letters.
MOVED_CUSTOMER = "zoe"
MOVED_ONCE_IN = 300
CENTS_MAX = 50_000


@dataclass(frozen=True, slots=True)
class Order:
    """`step` becomes the message's tag, `number` its key."""

    number: int
    customer: str
    cents: int
    step: str

    @property
    def body(self) -> dict[str, str | int]:
        return {"number": self.number, "customer": self.customer, "cents": self.cents}


def next_order(number: int, chance: random.Random) -> Order:
    step = chance.choices(list(STEPS), weights=list(STEPS.values()))[0]
    customer = MOVED_CUSTOMER if chance.randrange(MOVED_ONCE_IN) == 0 else chance.choice(CUSTOMERS)
    return Order(number, customer, chance.randrange(100, CENTS_MAX), step)
