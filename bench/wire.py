"""Measures frames that the wire core encodes and decodes in a second of processor time, by header kind. No socket."""

from __future__ import annotations

import time
from collections.abc import Callable

from remoting.wire.codes import RequestCode, SerializeType
from remoting.wire.command import Command
from remoting.wire.frames import FrameReader, encode_frame
from remoting.wire.headers.send import SendMessageHeaderV2
from remoting.wire.headers.typed import read_header, write_header

FRAMES = 50_000
# What one read of a socket brings at most.
CHUNK_BYTES = 256 * 1024

_HEADER = SendMessageHeaderV2(
    producer_group="billing",
    topic="orders",
    queue_id=3,
    sys_flag=0,
    born_timestamp=1_700_000_000_000,
    flag=0,
    properties="UNIQ_KEY\x017F0000010001AABBCCDD00000001\x02TAGS\x01paid\x02",
)


def main() -> None:
    for kind in SerializeType:
        for body_bytes in (0, 1024, 256 * 1024):
            _bench_frames(kind, body_bytes)
    fields = write_header(_HEADER)
    _report("typed header written", _rate(lambda: write_header(_HEADER), FRAMES))
    _report("typed header read", _rate(lambda: read_header(SendMessageHeaderV2, fields), FRAMES))


def _bench_frames(kind: SerializeType, body_bytes: int) -> None:
    command = Command(
        code=RequestCode.SEND_MESSAGE_V2,
        opaque=7,
        ext_fields=write_header(_HEADER),
        body=b"x" * body_bytes,
        serialize_type=kind,
    )
    frame = encode_frame(command)
    name = f"{kind.name:<8} header, body of {body_bytes:>6} bytes"
    count = FRAMES if body_bytes <= 1024 else FRAMES // 50
    _report(f"{name}: encoded", _rate(lambda: encode_frame(command), count))
    stream = frame * count if body_bytes <= 1024 else frame * min(count, 200)
    chunks = [stream[start : start + CHUNK_BYTES] for start in range(0, len(stream), CHUNK_BYTES)]
    reader = FrameReader()
    began_s = time.thread_time()
    read = sum(len(reader.feed(chunk)) for chunk in chunks)
    _report(f"{name}: decoded", read / (time.thread_time() - began_s))


def _rate(do: Callable[[], object], count: int) -> float:
    began_s = time.thread_time()
    for _ in range(count):
        do()
    return count / (time.thread_time() - began_s)


def _report(what: str, rate: float) -> None:
    print(f"{what:<55} {rate:>12,.0f}/s")


if __name__ == "__main__":
    main()
