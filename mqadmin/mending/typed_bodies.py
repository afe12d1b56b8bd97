"""A body as people type it, and back. Pure.

JSON is shown indented and stored as compact as it was; text stays text; what is no text is typed in hexadecimal. What
was JSON must be JSON afterwards, what was text must be text: a listener expects its kind, and a slip of the hand would
make the message die again.
"""

from __future__ import annotations

import base64
import binascii
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

import msgspec
from django.utils.translation import gettext as _

from remoting.wire.limits import BODY_BYTES_MAX

# Encoded in a form a character becomes up to nine, and Django reads 1 MiB of one; nobody reads more in a field.
FIELD_BYTES_MAX = 96 * 1024
# Control characters that a text field gives back as they are.
_KEPT_CONTROLS = frozenset("\t\n")
# What `msgspec.json.format` takes: without any blank, with blanks between values.
_COMPACT_INDENTS = (-1, 0)


class BodyKind(StrEnum):
    JSON = "json"
    TEXT = "text"
    BINARY = "binary"


class TypedAs(StrEnum):
    """How a typed body is to be read."""

    TEXT = "text"
    HEX = "hex"
    BASE64 = "base64"


@dataclass(frozen=True, slots=True)
class TypedBody:
    """What a field starts with. `reason` says why the body cannot be edited in one; `text` is "" then."""

    text: str
    typed_as: TypedAs
    reason: str = ""


class WrongBody(ValueError):
    """What was typed cannot be the body; the text says why."""


def kind_of(body: bytes) -> BodyKind:
    """Returns the kind that the body has to keep. An empty one may become any text."""
    if not body:
        return BodyKind.TEXT
    if _is_json(body):
        return BodyKind.JSON
    try:
        body.decode()
    except UnicodeDecodeError:
        return BodyKind.BINARY
    return BodyKind.TEXT


def typed(body: bytes) -> TypedBody:
    """Returns the body as a field shows it."""
    if len(body) > FIELD_BYTES_MAX:
        reason = _(
            "It has %(bytes)d bytes; %(most)d can be edited here. Mend it by a JSON Patch, over REST up to 1 MiB, or"
            " send its export back as a file."
        )
        return TypedBody("", TypedAs.TEXT, reason % {"bytes": len(body), "most": FIELD_BYTES_MAX})
    if kind_of(body) == BodyKind.JSON:
        return TypedBody(msgspec.json.format(body, indent=2).decode(), TypedAs.TEXT)
    text = _field_text(body)
    return TypedBody(text, TypedAs.TEXT) if text is not None else TypedBody(_hex_lines(body), TypedAs.HEX)


def read_typed(original: bytes, text: str, typed_as: TypedAs) -> bytes:
    """Returns the body that was typed in place of the original. Raises WrongBody."""
    body = _READERS[typed_as](text)
    if len(body) > BODY_BYTES_MAX:
        words = _("It has %(bytes)d bytes; a broker takes %(most)d.")
        raise WrongBody(words % {"bytes": len(body), "most": BODY_BYTES_MAX})
    match kind_of(original):
        case BodyKind.JSON:
            checked_json(body)
            return as_compact(body, original)
        case BodyKind.TEXT if kind_of(body) == BodyKind.BINARY:
            raise WrongBody(_("The body is text, and what was typed is not: it must be UTF-8."))
    return body


def from_field(text: str, original: bytes) -> str:
    """Returns a field's text with the ends of lines of the original: browsers send CR LF, whatever was shown."""
    return text if b"\r\n" in original else text.replace("\r\n", "\n")


def checked_json(body: bytes) -> None:
    """Raises WrongBody where it is not JSON."""
    try:
        msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise WrongBody(_("The body is JSON, and what was typed is not: %(reason)s") % {"reason": error}) from error


def as_compact(body: bytes, original: bytes) -> bytes:
    """Returns JSON with as few blanks as the original has; one that says the same is the original itself."""
    if msgspec.json.format(body, indent=-1) == msgspec.json.format(original, indent=-1):
        return original
    for indent in _COMPACT_INDENTS:
        if msgspec.json.format(original, indent=indent) == original:
            return msgspec.json.format(body, indent=indent)
    return body


def _is_json(body: bytes) -> bool:
    try:
        msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _field_text(body: bytes) -> str | None:
    """Returns a body as a text field gives it back unchanged; None where no field would."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return None
    lines = text.replace("\r\n", "\n")
    is_mixed = "\r" in lines or ("\r\n" in text and text.count("\n") != text.count("\r\n"))
    is_kept = all(unicodedata.category(character) != "Cc" or character in _KEPT_CONTROLS for character in lines)
    return text if is_kept and not is_mixed else None


def _hex_lines(body: bytes) -> str:
    return "\n".join(body[start : start + 32].hex(" ") for start in range(0, len(body), 32))


def _from_text(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise WrongBody(_("What was typed has a character that is none (a lone surrogate).")) from error


def _from_hex(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError as error:
        raise WrongBody(_("This is not hexadecimal: two digits a byte, such as 0a ff.")) from error


def _from_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise WrongBody(_("This is not Base64: %(reason)s") % {"reason": error}) from error


_READERS: Mapping[TypedAs, Callable[[str], bytes]] = {
    TypedAs.TEXT: _from_text,
    TypedAs.HEX: _from_hex,
    TypedAs.BASE64: _from_base64,
}
