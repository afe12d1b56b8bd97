"""A JSON Patch (RFC 6902) on bodies. Pure.

Numbers stay as they are written: 1.10 does not become 1.1. What is not said by the patch stays, but for the blanks of a
body that was neither compact nor on one line: it is compact afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import jsonpatch
import jsonpointer
import msgspec
from django.utils.translation import gettext as _

from mqadmin.mending.typed_bodies import as_compact
from remoting.wire.limits import BODY_BYTES_MAX

PATCH_BYTES_MAX = 64 * 1024
# A person writes some; each is applied to each body.
OPERATIONS_MAX = 50
# Of a reason in a preview and in the audit; it may hold a part of a body.
REASON_CHARS_MAX = 200

_decoder = msgspec.json.Decoder(float_hook=Decimal)
_encoder = msgspec.json.Encoder(decimal_format="number")
# What an operation needs besides `op` and `path`.
_NEEDED = {"add": "value", "replace": "value", "test": "value", "move": "from", "copy": "from"}
# Only these make a document larger than patch and document together.
_GROWING = frozenset({"copy"})


class WrongPatch(ValueError):
    """The text is no JSON Patch; it says why."""


class DoesNotApply(ValueError):
    """The patch cannot be applied to this body; the text says why, in words that many bodies share."""


@dataclass(frozen=True, slots=True)
class Patch:
    """Operations, checked."""

    operations: tuple[dict[str, Any], ...]


def read_patch(text: str) -> Patch:
    """Raises WrongPatch."""
    if len(text.encode(errors="replace")) > PATCH_BYTES_MAX:
        raise WrongPatch(_("A patch may have %(most)d bytes.") % {"most": PATCH_BYTES_MAX})
    try:
        operations = _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise WrongPatch(_("This is not JSON: %(error)s") % {"error": error}) from error
    if not isinstance(operations, list) or not all(isinstance(one, dict) for one in operations) or not operations:
        example = '[{"op": "replace", "path": "/currency", "value": "EUR"}]'
        raise WrongPatch(_("A JSON Patch is a list of operations: %(example)s") % {"example": example})
    if len(operations) > OPERATIONS_MAX:
        raise WrongPatch(_("A patch may have %(most)d operations.") % {"most": OPERATIONS_MAX})
    try:
        jsonpatch.JsonPatch(operations)
        for one in operations:
            if (needed := _NEEDED.get(one["op"])) and needed not in one:
                raise jsonpatch.InvalidJsonPatch(f"{one['op']} {one['path']} lacks {needed!r}")
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError) as error:
        raise WrongPatch(_("This is not a JSON Patch: %(reason)s") % {"reason": _cut(error)}) from error
    return Patch(tuple(operations))


def apply(patch: Patch, body: bytes) -> bytes:
    """Returns the body afterwards. Raises DoesNotApply."""
    try:
        document = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DoesNotApply(_("The body is not JSON.")) from error
    try:
        for operation in patch.operations:
            document = jsonpatch.JsonPatch([operation]).apply(document, in_place=True)
            if operation["op"] in _GROWING:
                _check_size(_encoder.encode(document))
        encoded = _encoder.encode(document)
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException) as error:
        raise DoesNotApply(_cut(error)) from error
    except (TypeError, KeyError, RecursionError) as error:
        raise DoesNotApply(_("The body does not have what the patch names.")) from error
    _check_size(encoded)
    return as_compact(encoded, body)


def _check_size(encoded: bytes) -> None:
    if len(encoded) > BODY_BYTES_MAX:
        words = _("It would have more than the %(most)d bytes that a broker takes.")
        raise DoesNotApply(words % {"most": BODY_BYTES_MAX})


def _cut(error: Exception) -> str:
    return str(error)[:REASON_CHARS_MAX]
