"""What the shop does with its orders."""

from __future__ import annotations

from consumer import Message, listener
from examples.shop.mail import send_mail


@listener(group="billing", topic="orders", tags="paid || refunded", wanted_instances=2)
def bill(message: Message) -> int:
    """Books a payment or takes it back. Sync code: it runs in a thread, and may use Django's ORM."""
    order = message.json()
    cents = int(order["cents"])
    return cents if message.tags == "paid" else -cents


@listener(group="mailing", topic="orders", wanted_instances=2)
async def tell_customer(message: Message) -> None:
    """Writes to the customer about every step. When the mail server is busy this raises: the message comes later."""
    order = message.json()
    await send_mail(order["customer"], f"Order {order['number']} was {message.tags}", message.reconsume_times)
