"""Orders that customers might make: pure, from a number and a source of chance."""

from __future__ import annotations

import random
from dataclasses import dataclass

# What happens to an order, and how often of a hundred.
STEPS = {"created": 45, "paid": 45, "refunded": 10}
CUSTOMERS = ("anna", "bo", "chen", "dilip", "elif", "femi", "gita", "hugo")
CENTS_MAX = 50_000


@dataclass(frozen=True, slots=True)
class Order:
    """`step` travels as the message's tag, `number` as its key."""

    number: int
    customer: str
    cents: int
    step: str

    @property
    def body(self) -> dict[str, str | int]:
        return {"number": self.number, "customer": self.customer, "cents": self.cents}


def next_order(number: int, chance: random.Random) -> Order:
    step = chance.choices(list(STEPS), weights=list(STEPS.values()))[0]
    return Order(number, chance.choice(CUSTOMERS), chance.randrange(100, CENTS_MAX), step)
