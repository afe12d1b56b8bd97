"""One command: the value that travels in a frame, request and response alike (RocketMQ's `RemotingCommand`).

A command knows nothing of bytes; `frames.py` reads and writes it. Requests and responses are paired by `opaque`
on one connection. `ext_fields` is the raw string map of the typed header (`headers/`).
"""

from __future__ import annotations

import msgspec

from remoting.wire.codes import (
    ONEWAY_FLAG,
    OUR_VERSION,
    RESPONSE_FLAG,
    LanguageCode,
    SerializeType,
    request_name,
    response_name,
)

Body = bytes | bytearray | memoryview


class Command(msgspec.Struct, kw_only=True):
    """`code` is a request code, or a response code where `is_response`. An empty body is "no body"."""

    code: int
    opaque: int = 0
    flag: int = 0
    language: int = LanguageCode.PYTHON
    version: int = OUR_VERSION
    remark: str | None = None
    ext_fields: dict[str, str] = {}
    body: Body = b""
    serialize_type: SerializeType = SerializeType.JSON

    @property
    def is_response(self) -> bool:
        return bool(self.flag & RESPONSE_FLAG)

    @property
    def is_oneway(self) -> bool:
        return bool(self.flag & ONEWAY_FLAG)

    def __str__(self) -> str:
        name = f"< {response_name(self.code)}" if self.is_response else f"> {request_name(self.code)}"
        oneway = " oneway" if self.is_oneway else ""
        remark = f" {self.remark!r}" if self.remark else ""
        return f"{name}{oneway} opaque={self.opaque} fields={len(self.ext_fields)} body={len(self.body)}B{remark}"


def response(
    request: Command,
    code: int,
    remark: str | None = None,
    ext_fields: dict[str, str] | None = None,
    body: Body = b"",
) -> Command:
    """Returns a response to `request`: same opaque, same header serialization (C++ reads JSON only)."""
    return Command(
        code=code,
        opaque=request.opaque,
        flag=RESPONSE_FLAG,
        remark=remark,
        ext_fields=ext_fields or {},
        body=body,
        serialize_type=request.serialize_type,
    )
