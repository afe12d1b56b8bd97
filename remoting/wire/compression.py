"""Compresses and decompresses bodies: zlib, LZ4 frames and zstd, as the message's sysFlag says.

The sizes that a compressed body claims are never trusted: output stops at the limit, whatever comes in.
Java: `MessageSysFlag`, `CompressionType`, `ZlibCompressor`, `Lz4Compressor`, `ZstdCompressor`.
"""

from __future__ import annotations

import zlib
from enum import IntEnum

import lz4.frame
import zstandard

from remoting.wire import limits
from remoting.wire.errors import BodyError

COMPRESSED_FLAG = 0x1
COMPRESSION_TYPE_MASK = 0x700
# Clients and brokers use 5 for all three.
LEVEL = 5
# zstd keeps a window of its output in memory; one larger than the largest output is an attack.
_ZSTD_WINDOW_BYTES_MAX = limits.DECOMPRESSED_BODY_BYTES_MAX


class CompressionType(IntEnum):
    """Bits 8 to 10 of sysFlag. 0, from clients before 4.9.4, means zlib too."""

    LZ4 = 0x100
    ZSTD = 0x200
    ZLIB = 0x300


def compress(
    body: bytes, sys_flag: int = 0, kind: CompressionType = CompressionType.ZLIB, level: int = LEVEL
) -> tuple[bytes, int]:
    """Returns the compressed `body`, and `sys_flag` with the bits that say so."""
    marked = (sys_flag & ~COMPRESSION_TYPE_MASK) | COMPRESSED_FLAG | kind
    if kind is CompressionType.LZ4:
        return lz4.frame.compress(body), marked
    if kind is CompressionType.ZSTD:
        return zstandard.ZstdCompressor(level=level).compress(body), marked
    return zlib.compress(body, level), marked


def decompress(body: bytes, sys_flag: int, bytes_max: int = limits.DECOMPRESSED_BODY_BYTES_MAX) -> bytes:
    """Returns the plain body; `body` itself when sysFlag does not say compressed.

    Raises BodyError when it is garbage, cut off, of an unknown type, or larger than `bytes_max`.
    """
    if not sys_flag & COMPRESSED_FLAG:
        return body
    kind = sys_flag & COMPRESSION_TYPE_MASK
    try:
        match kind:
            case 0 | CompressionType.ZLIB:
                plain = _inflate(body, bytes_max)
            case CompressionType.LZ4:
                plain = _read_lz4(body, bytes_max)
            case CompressionType.ZSTD:
                plain = _read_zstd(body, bytes_max)
            case _:
                raise BodyError(f"unknown compression type {kind:#x} in sysFlag")
    except (zlib.error, RuntimeError, EOFError, zstandard.ZstdError) as error:
        raise BodyError(f"compressed body cannot be read: {error}") from error
    if len(plain) > bytes_max:
        raise BodyError(f"decompressed body is larger than {bytes_max} bytes")
    return plain


def _inflate(body: bytes, bytes_max: int) -> bytes:
    inflater = zlib.decompressobj()
    plain = inflater.decompress(body, bytes_max + 1)
    if not inflater.eof and len(plain) <= bytes_max:
        raise EOFError("zlib stream is cut off")
    return plain


def _read_lz4(body: bytes, bytes_max: int) -> bytes:
    reader = lz4.frame.LZ4FrameDecompressor()
    plain: bytes = reader.decompress(body, max_length=bytes_max + 1)
    if not reader.eof and len(plain) <= bytes_max:
        raise EOFError("LZ4 frame is cut off")
    return plain


def _read_zstd(body: bytes, bytes_max: int) -> bytes:
    reader = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES_MAX).stream_reader(body)
    plain = reader.read(bytes_max + 1)
    if len(plain) <= bytes_max and not _zstd_is_whole(body, len(plain)):
        raise EOFError("zstd frame is cut off")
    return plain


def _zstd_is_whole(body: bytes, plain_bytes: int) -> bool:
    """Returns whether a zstd frame is complete: the stream reader does not say.

    Its plain size is known to be bounded here.
    """
    claimed = zstandard.frame_content_size(body)
    if claimed >= 0:
        return bool(claimed == plain_bytes)
    pusher = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES_MAX).decompressobj()
    pusher.decompress(body)
    return bool(pusher.eof)
