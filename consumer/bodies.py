"""How message bodies become values of the type that a listener declares (`@listener(…, body=Order)`).

    bytes, str                      as they are, as UTF-8 text
    dict, list, int, list[Order] …  JSON; what the type says of its members is checked
    a msgspec.Struct, a dataclass,
    a TypedDict                     JSON, checked by msgspec
    a pydantic model                JSON, checked by pydantic, where that is installed

The listener finds the value in `message.data`. A body that does not decode never reaches the listener: the message goes
the way of every failure, and the reason is NotDecoded's text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from consumer.engine.outcomes import NotDecoded

Decode = Callable[[bytes], Any]


def decoder(declared: Any) -> Decode | None:
    """Returns what decodes a body as `declared`, None for bytes. Raises TypeError for a type that no body can have."""
    if declared is bytes:
        return None
    if declared is str:
        return _text
    name = getattr(declared, "__name__", None) or repr(declared)
    if (model := _pydantic_decoder(declared)) is not None:
        return _checked(model, name)
    return _checked(_json_decoder(declared, name), name)


def body_fault(declared: Any) -> str:
    """Returns why no body can be of the type `declared`, "" when it can."""
    try:
        decoder(declared)
    except TypeError as error:
        return str(error)
    return ""


def _text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise NotDecoded(f"the body is no UTF-8 text: {error.reason} at byte {error.start}") from None


def _checked(decode: Decode, name: str) -> Decode:
    """Wraps a JSON decoder: what it refuses (all are ValueErrors) becomes NotDecoded, in one line."""

    def checked(body: bytes) -> Any:
        try:
            return decode(body)
        except (ValueError, RecursionError) as error:
            raise NotDecoded(f"the body is no {name} as JSON: {' '.join(str(error).split())}") from None

    return checked


def _json_decoder(declared: Any, name: str) -> Decode:
    kinds = "bytes, str, dict, list, a msgspec.Struct, a dataclass or a pydantic model"
    if declared is None:
        raise TypeError(f"{kinds} is needed")
    try:
        described = msgspec.inspect.type_info(declared)
        decode: Decode = msgspec.json.Decoder(declared).decode
    except (TypeError, NameError) as error:
        raise TypeError(f"{' '.join(str(error).split())}; {kinds} is needed") from error
    if isinstance(described, msgspec.inspect.CustomType):
        raise TypeError(f"no body can be a {name}; {kinds} is needed")
    return decode


def _pydantic_decoder(declared: Any) -> Decode | None:
    try:
        from pydantic import BaseModel  # a team's own choice, not one of ours
    except ImportError:
        return None
    if isinstance(declared, type) and issubclass(declared, BaseModel):
        model: Decode = declared.model_validate_json
        return model
    return None
