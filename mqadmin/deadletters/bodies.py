"""A dead letter's body for people: as text they can read, found where it still is, and hidden from whom it must be."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import msgspec
from django.conf import settings
from django.utils.translation import gettext_noop

from mqadmin.clusters.models import Cluster
from mqadmin.deadletters.content import ContentGone, read_content
from mqadmin.deadletters.models import DeadLetter
from mqadmin.observing.gateway import GatewayError, ask
from mqadmin.people.masking import is_masked
from mqadmin.people.roles import Role
from remoting.wire.names import dlq_topic

# More than a person reads; the rest is in the export.
SHOWN_BYTES_MAX = 64 * 1024
# Bytes of a line of a hexadecimal dump.
DUMP_LINE_BYTES = 16
DUMP_BYTES_MAX = 4 * 1024


class BodyKind(StrEnum):
    """How a body is shown, or why it is not."""

    JSON = "json"
    TEXT = "text"
    BINARY = "binary"
    EMPTY = "empty"
    MASKED = "masked"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Body:
    """`text` is at most SHOWN_BYTES_MAX of it; `is_cut`: there is more. `note` says why it is not there."""

    kind: BodyKind
    text: str = ""
    is_cut: bool = False
    note: str = ""


def body_of(dead: DeadLetter, role: Role | None) -> Body:
    """Returns the body as the role may see it: the kept one, else the broker is asked while the viewer waits."""
    if is_masked(settings.MQADMIN_MASKED, role, {dead.origin_topic, dlq_topic(dead.group_name)}):
        return Body(BodyKind.MASKED)
    kept = dead.kept.body
    if kept is not None:
        return shown(bytes(kept))
    body, note = ask_broker(dead)
    return shown(body) if body is not None else Body(BodyKind.GONE, note=note)


def ask_broker(dead: DeadLetter) -> tuple[bytes | None, str]:
    """Returns the plain body from the broker that stored it, or None and why it can't be had."""
    cluster: Cluster = dead.cluster
    address = cluster.brokers.filter(name=dead.broker_name, broker_id=0).values_list("address", flat=True).first()
    if address is None:
        return None, gettext_noop("broker %(broker)s is not known any more") % {"broker": dead.broker_name}
    try:
        return ask(cluster.namesrv, lambda gateway: read_content(gateway, dead, address)).body, ""
    except (GatewayError, ContentGone) as error:
        return None, str(error)


def shown(body: bytes) -> Body:
    """Returns a plain body as text: JSON indented, other text as it is, anything else in hexadecimal."""
    if not body:
        return Body(BodyKind.EMPTY)
    cut = body[:SHOWN_BYTES_MAX]
    if len(body) == len(cut):
        try:
            msgspec.json.decode(body)
            return Body(BodyKind.JSON, msgspec.json.format(body, indent=2).decode())
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass
    try:
        # A character that the cut went through is left out.
        text = cut.decode("utf-8", "strict") if len(body) == len(cut) else _cut_text(cut)
    except UnicodeDecodeError:
        return Body(BodyKind.BINARY, hex_dump(body[:DUMP_BYTES_MAX]), len(body) > DUMP_BYTES_MAX)
    return Body(BodyKind.TEXT, text, len(body) > len(cut))


def _cut_text(cut: bytes) -> str:
    """Raises UnicodeDecodeError where it is no text before its last character."""
    try:
        return cut.decode()
    except UnicodeDecodeError as error:
        if error.start < len(cut) - 3:
            raise
        return cut[: error.start].decode()


def hex_dump(body: bytes) -> str:
    """Returns lines of offset, bytes in hexadecimal, and the characters that can be printed."""
    lines = []
    for start in range(0, len(body), DUMP_LINE_BYTES):
        line = body[start : start + DUMP_LINE_BYTES]
        characters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in line)
        lines.append(f"{start:08x}  {line.hex(' '):<{DUMP_LINE_BYTES * 3 - 1}}  {characters}")
    return "\n".join(lines)
