"""What the dead letters of the benchmark are made of: names, texts and JSON bodies, as an installation has them.

Nothing here is written: `dead_letter_rows.py` does that.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from mqadmin.deadletters.models import DeadLetter, Failure
from mqadmin.deadletters.search_texts import searched_body, words_text

MEMBER_COUNT = 500
CUSTOMER_COUNT = 100_000
TENANT_COUNT = 400
BIG_GROUP, OLD_GROUP, RARE_TAG, LOST_TOPIC = "orders-settlement", "legacy-import", "rare-tag", "lost-topic"
RARE_EVERY = 50_000
ARCHIVED_EVERY = 50
ATTEMPTS, LISTENER = 16, "shop.listeners.on_event"
CLASSES = (
    "com.shop.payment.PaymentTimeoutException",
    "java.net.SocketTimeoutException",
    "org.springframework.dao.DuplicateKeyException",
    "com.shop.stock.OutOfStockException",
    "builtins.KeyError",
    "builtins.ValueError",
    "django.db.utils.OperationalError",
    "requests.exceptions.ReadTimeout",
    "json.decoder.JSONDecodeError",
    "",
)
TEXTS = (
    "no answer from payment-gateway after 30 s",
    "Duplicate entry for key uk_order_id",
    "missing field customer.address",
    "connection refused by ledger-db",
    "Expecting value: line 1 column 1 (char 0)",
)
WORDS = (
    "invoice",
    "address",
    "delivery",
    "express",
    "parcel",
    "weekend",
    "gift",
    "red",
    "blue",
    "small",
    "large",
    "cotton",
    "leather",
    "kettle",
    "lamp",
    "window",
    "garden",
    "return",
    "exchange",
    "voucher",
    "partner",
    "branch",
    "north",
    "south",
    "station",
    "pickup",
    "locker",
    "signed",
    "fragile",
    "insured",
    "customs",
    "declared",
)
_CITIES = ("Hangzhou", "Berlin", "São Paulo", "Nairobi", "Osaka", "Toronto", "上海", "Kraków")


# In the order of a `Row.dead`.
DEAD_COLUMNS = (
    "id",
    "cluster_id",
    "failure_id",
    "group_name",
    "broker_name",
    "queue_id",
    "queue_offset",
    "dead_at",
    "message_id",
    "offset_message_id",
    "origin_topic",
    "tag",
    "keys",
    "born_at",
    "born_host",
    "attempt_count",
    "failure_class",
    "failure_text",
    "failed_member",
    "failed_listener",
    "body_bytes",
    "archived_at",
)


@dataclass(frozen=True, slots=True)
class Kind:
    """What dead letters of one failure have in common; `words` and `marks` stand behind those of the row."""

    failure_id: int
    group: str
    topic: str
    tag: str
    failure_class: str
    failure_text: str
    words: str
    marks: str
    incident: str = ""


def order_key(number: int) -> str:
    """Returns the key that one dead letter has alone."""
    return f"order-{number:09d}"


def message_id(number: int) -> str:
    """Returns the id that one dead letter has alone."""
    return f"7F0000010B2C18B4AAC2{number:012X}"


def kind_of(failure: Failure) -> Kind:
    """Returns what the dead letters of the failure have in common."""
    common = DeadLetter(
        failure=failure,
        group_name=failure.group_name,
        origin_topic=failure.origin_topic,
        tag=failure.tag,
        failure_class=failure.failure_class,
        failure_text=failure.failure_text,
        failed_listener=LISTENER,
        attempt_count=ATTEMPTS,
        broker_name="broker-a",
        queue_id=0,
    )
    return Kind(
        failure_id=failure.pk,
        group=failure.group_name,
        topic=failure.origin_topic,
        tag=failure.tag,
        failure_class=failure.failure_class,
        failure_text=failure.failure_text,
        words=words_text(common, {}),
        marks=searched_body(common, b"x")[1:],
    )


@dataclass(frozen=True, slots=True)
class Row:
    """One dead letter, as its three tables have it."""

    dead: tuple[Any, ...]
    properties: str
    body: bytes | None
    words: str
    text: str


def row(choice: random.Random, cluster_id: int, kind: Kind, pk: int, number: int, at: datetime) -> Row:
    """Returns the dead letter of this number, which died at that moment of a failure of this kind."""
    is_rare = number % RARE_EVERY == 7
    tag = RARE_TAG if is_rare else kind.tag
    customer, draw = choice.randrange(CUSTOMER_COUNT), choice.random()
    member = f"10.2.{customer % 5}.{customer % 100}@{1000 + customer % MEMBER_COUNT}"
    host = f"10.1.{customer % 4}.{customer % 250}:41234"
    unique, stored, key = message_id(number), f"0A000001000078BC{number * 2000:016X}", order_key(number)
    tenant = f"acme{customer % TENANT_COUNT}"
    whole_host, whole_member = host.replace(".", "").replace(":", ""), member.replace(".", "").replace("@", "")
    words = (
        f" {unique.lower()} {stored.lower()} order{number:09d} customer{customer:06d} {whole_host} {whole_host[:-5]} "
        f"{whole_member} order {number:09d} customer {customer:06d}"
        f" {tenant} acme {customer % TENANT_COUNT} tenant\ue002{tenant}{' raretag rare' if is_rare else ''}{kind.words}"
    )
    body = _body(choice, kind, number, customer, draw, is_rare=is_rare)
    properties = json.dumps(
        {
            "UNIQ_KEY": unique,
            "KEYS": f"{key} customer-{customer:06d}",
            "TAGS": tag,
            "tenant": f"acme-{customer % TENANT_COUNT}",
            "RETRY_TOPIC": kind.topic,
            "__FAILURE_CLASS": kind.failure_class,
            "__FAILURE_TEXT": kind.failure_text,
            "__FAILURE_MEMBER": member,
            "__FAILURE_LISTENER": LISTENER,
        }
    )
    dead = (
        pk,
        cluster_id,
        kind.failure_id,
        kind.group,
        "broker-a",
        0,
        number,
        at,
        unique,
        stored,
        kind.topic,
        tag,
        f" {key} customer-{customer:06d} ",
        at - timedelta(minutes=280),
        host,
        ATTEMPTS,
        kind.failure_class,
        kind.failure_text,
        member,
        LISTENER,
        len(body),
        at if number % ARCHIVED_EVERY == 11 else None,
    )
    # One of a hundred is no text.
    is_text = draw >= 0.01
    text = f"{body.decode()}{kind.marks}" if is_text else ""
    return Row(dead, properties, body if is_text else body + b"\xff\xfe", words, text)


def _body(choice: random.Random, kind: Kind, number: int, customer: int, draw: float, *, is_rare: bool) -> bytes:
    words = choice.choices(WORDS, k=12)
    items = ", ".join(
        f'{{"sku": "sku-{(customer * 31 + each * 977) % 20_000:05d}", "qty": {each + 1}, "price": {19 + each * 7}.90}}'
        for each in range(1 + customer % 3)
    )
    return (
        f'{{"order": "{order_key(number)}", "customer": {{"id": "customer-{customer:06d}", '
        f'"city": "{_CITIES[customer % 8]}", "vip": {"true" if draw > 0.95 else "false"}}}, '
        f'"currency": "{"EUR" if customer % 2 else "USD"}", "items": [{items}], "amount": {int(draw * 90_000)}, '
        f'"channel": "{words[0]}", "trace": "{choice.getrandbits(128):032x}", '
        f'"note": "{" ".join(words)}{" needle in it" if is_rare else ""}", "batch": "{kind.incident or "live"}"}}'
    ).encode()
