from __future__ import annotations

import zlib

import lz4.frame
import pytest
import zstandard

from remoting.wire.compression import CompressionType, compress, decompress
from remoting.wire.errors import BodyError

PLAIN = b"the same words again and again, " * 500
EVERY_TYPE = pytest.mark.parametrize("kind", list(CompressionType), ids=lambda kind: kind.name)


@EVERY_TYPE
def test_a_compressed_body_comes_back(kind: CompressionType) -> None:
    packed, sys_flag = compress(PLAIN, 0x10, kind)
    assert len(packed) < len(PLAIN)
    assert sys_flag == 0x10 | 0x1 | kind
    assert decompress(packed, sys_flag) == PLAIN


def test_compress_replaces_the_type_that_was_there() -> None:
    assert compress(b"x", 0x301, CompressionType.LZ4)[1] == 0x101


def test_type_zero_of_old_clients_is_zlib() -> None:
    assert decompress(zlib.compress(PLAIN, 5), 0x1) == PLAIN


def test_a_plain_body_passes_untouched() -> None:
    assert decompress(PLAIN, 0x300) is PLAIN


@EVERY_TYPE
def test_a_bomb_is_refused_at_the_limit(kind: CompressionType) -> None:
    packed, sys_flag = compress(bytes(1 << 24), 0, kind)
    with pytest.raises(BodyError, match="larger than 65536"):
        decompress(packed, sys_flag, bytes_max=65536)


def test_a_zstd_bomb_without_a_size_is_refused_at_the_limit() -> None:
    packer = zstandard.ZstdCompressor().compressobj()
    packed = packer.compress(bytes(1 << 24)) + packer.flush()
    with pytest.raises(BodyError, match="larger than 65536"):
        decompress(packed, 0x201, bytes_max=65536)


def test_a_zstd_frame_without_a_size_comes_back_and_is_refused_when_cut() -> None:
    packer = zstandard.ZstdCompressor().compressobj()
    packed = packer.compress(PLAIN) + packer.flush()
    assert decompress(packed, 0x201) == PLAIN
    with pytest.raises(BodyError):
        decompress(packed[:-3], 0x201)


@EVERY_TYPE
def test_the_limit_itself_is_allowed(kind: CompressionType) -> None:
    packed, sys_flag = compress(PLAIN, 0, kind)
    assert decompress(packed, sys_flag, bytes_max=len(PLAIN)) == PLAIN


@EVERY_TYPE
def test_garbage_and_cut_bodies_are_refused(kind: CompressionType) -> None:
    packed, sys_flag = compress(PLAIN, 0, kind)
    for broken in (b"garbage, not a frame", packed[:-1], packed[: len(packed) // 2], b""):
        with pytest.raises(BodyError):
            decompress(broken, sys_flag)


def test_an_unknown_type_is_refused() -> None:
    with pytest.raises(BodyError, match="unknown compression type 0x400"):
        decompress(b"x", 0x401)


def test_lz4_is_the_frame_format_not_the_block() -> None:
    assert decompress(lz4.frame.compress(PLAIN, block_size=lz4.frame.BLOCKSIZE_MAX4MB), 0x101) == PLAIN
