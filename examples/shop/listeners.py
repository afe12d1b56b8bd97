"""The shop's consumer groups."""

from __future__ import annotations

import msgspec

from consumer import Message, listener
from examples.shop.mail import MailboxClosed, send_mail


@listener(group="billing", topic="orders", tags="paid || refunded", wanted_instances=2)
def bill(message: Message) -> int:
    """Books a payment or a refund. A plain function runs in a thread and may use Django's ORM."""
    order = message.json()
    cents = int(order["cents"])
    return cents if message.tags == "paid" else -cents


@listener(group="mailing", topic="orders", wanted_instances=2, dead_letter_on=MailboxClosed)
async def mail_customer(message: Message) -> None:
    """Sends a mail about each step of an order.

    While the mail server is busy it raises: the message comes again. Where the mailbox is closed that would not help:
    the message is a dead letter at once.
    """
    order = message.json()
    await send_mail(order["customer"], f"Order {order['number']} was {message.tags}", message.reconsume_times)


class Step(msgspec.Struct):
    """The body of a message about an order."""

    number: int
    customer: str
    cents: int


@listener(group="ledger", topic="orders", body=Step, orderly=True, wanted_instances=0)
def write_down(message: Message[Step]) -> str:
    """Writes down what happens to each order, one step after the other. No instance runs until somebody wants one."""
    step = message.data
    return f"order {step.number} of {step.customer}: {message.tags}, {step.cents / 100:.2f}"
