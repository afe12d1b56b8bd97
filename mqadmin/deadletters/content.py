"""What is sent of a dead letter when it is replayed or exported: its body, not compressed, and all its properties.

Kept where the index keeps it; else the broker that has it is asked.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from django.utils.translation import gettext_noop

from mqadmin.deadletters.models import DeadLetter, KeptMessage, MendedCopy
from mqadmin.observing.gateway import Failures, Gateway, GatewayError, QueuePlace
from remoting.wire.compression import decompress
from remoting.wire.errors import WireError
from remoting.wire.names import dlq_topic


class ContentGone(Exception):
    """Neither kept nor on the broker any more, or not readable; the text says which."""


@dataclass(frozen=True, slots=True)
class Content:
    """`is_mended`: it is a copy that people changed, so it is another message than the sender's."""

    body: bytes
    properties: dict[str, str]
    is_mended: bool = False


def kept_contents(dead_letter_ids: Collection[int]) -> dict[int, Content]:
    """Returns the contents that the database holds, by dead letter: the mended copy, else what the index has kept.

    What is missing is on the broker, if anywhere.
    """
    rows = KeptMessage.objects.filter(pk__in=dead_letter_ids, body__isnull=False)
    kept = {row.pk: Content(bytes(row.body or b""), row.properties) for row in rows}
    mended = MendedCopy.objects.filter(pk__in=dead_letter_ids)
    return kept | {row.pk: Content(bytes(row.body), row.properties, is_mended=True) for row in mended}


def kept_properties(dead_letter_ids: Collection[int]) -> dict[int, dict[str, str]]:
    """Returns the properties that each would be sent with, whether its body is kept or not."""
    kept = KeptMessage.objects.filter(pk__in=dead_letter_ids).values_list("pk", "properties")
    mended = MendedCopy.objects.filter(pk__in=dead_letter_ids).values_list("pk", "properties")
    return dict(kept) | dict(mended)


async def read_content(gateway: Gateway, dead: DeadLetter, address: str) -> Content:
    """Returns the content from the broker at `address`. Raises ContentGone, GatewayError."""
    place = QueuePlace(address, dlq_topic(dead.group_name), dead.queue_id, dead.queue_offset)
    failures = Failures()
    reading = (await gateway.messages.read([place], failures, count=1)).get(place)
    if reading is None:
        raise GatewayError(failures.reasons[address])
    for message in reading.messages:
        if message.queue_offset == dead.queue_offset and message.offset_message_id == dead.offset_message_id:
            try:
                return Content(decompress(message.body, message.sys_flag), dict(message.properties))
            except WireError as error:
                raise ContentGone(str(error)) from error
    raise ContentGone(reading.refusal or gettext_noop("the broker does not have it any more"))
