"""Frames: bytes in, commands out; commands in, bytes out. No socket (RocketMQ's `NettyDecoder`, `NettyEncoder`).

    offset  size            field
    0       4               length of all that follows, i32 big-endian
    4       1               serialize type of the header: 0 JSON, 1 ROCKETMQ
    5       3               header length
    8       header length   header
    ...     the rest        body

A frame that breaks a limit or cannot be parsed breaks the stream: it is unknown where the next one begins.
"""

from __future__ import annotations

import sys

from remoting.wire import binary_header, json_header
from remoting.wire.codes import SerializeType
from remoting.wire.command import Command
from remoting.wire.errors import BrokenStream, FrameError
from remoting.wire.limits import FRAME_BYTES_MAX, HEADER_BYTES_MAX

LENGTH_BYTES = 4
# First bytes of HTTP requests, which are sent to this port by mistake; the error then says so.
_HTTP = frozenset({b"GET ", b"POST", b"PUT ", b"HEAD", b"DELE", b"OPTI", b"CONN", b"PRI "})


class FrameReader:
    """Collects bytes and returns whole commands; keeps one incomplete frame, and the frames not asked for yet.

    The commands do not depend on how the bytes were cut. A broken stream stays broken.
    """

    __slots__ = ("_broken", "_buffer", "frame_bytes_max")

    def __init__(self, frame_bytes_max: int = FRAME_BYTES_MAX) -> None:
        self._buffer = bytearray()
        self._broken: str | None = None
        self.frame_bytes_max = frame_bytes_max

    @property
    def buffered_bytes(self) -> int:
        """Returns how many bytes were fed and have not become commands."""
        return len(self._buffer)

    def feed(self, data: bytes, commands_max: int = sys.maxsize) -> list[Command]:
        """Returns the commands that `data` completes, in order. Raises BrokenStream when the stream cannot be read on.

        Where there are more than `commands_max`, the next calls return the others; their `data` may be empty.
        """
        commands: list[Command] = []
        if self._broken is not None:
            raise BrokenStream(self._broken, commands)
        buffer: bytes | bytearray = data
        if self._buffer:
            self._buffer += data
            buffer = self._buffer
        try:
            position = self._read(buffer, commands, commands_max)
        except FrameError as error:
            self._broken = str(error)
            self._buffer = bytearray()
            raise BrokenStream(self._broken, commands) from error
        self._keep(buffer, position)
        return commands

    def _read(self, buffer: bytes | bytearray, commands: list[Command], commands_max: int) -> int:
        """Appends whole commands and returns the position behind the last. Raises FrameError."""
        position, end = 0, len(buffer)
        while end - position >= LENGTH_BYTES and len(commands) < commands_max:
            length = int.from_bytes(buffer[position : position + LENGTH_BYTES], "big", signed=True)
            if not LENGTH_BYTES <= length <= self.frame_bytes_max - LENGTH_BYTES:
                raise FrameError(self._wrong_length(length, bytes(buffer[position : position + LENGTH_BYTES])))
            frame_end = position + LENGTH_BYTES + length
            if frame_end > end:
                break
            commands.append(decode_frame(bytes(buffer[position + LENGTH_BYTES : frame_end])))
            position = frame_end
        return position

    def _wrong_length(self, length: int, first: bytes) -> str:
        if first[:2] == b"\x16\x03":
            return "this is TLS, and only plain connections are served"
        if first in _HTTP:
            return "this is HTTP, not RocketMQ's protocol"
        if length < LENGTH_BYTES:
            return f"frame length {length} is shorter than a header-length word"
        return f"frame of {length + LENGTH_BYTES} bytes is over the limit of {self.frame_bytes_max} bytes"

    def _keep(self, buffer: bytes | bytearray, position: int) -> None:
        if buffer is self._buffer:
            del self._buffer[:position]
        elif position < len(buffer):
            self._buffer += buffer[position:] if position else buffer


def decode_frame(frame: bytes) -> Command:
    """Decodes a frame without its length field. Raises FrameError."""
    header_length = int.from_bytes(frame[1:4], "big")
    header_end = LENGTH_BYTES + header_length
    if header_length > HEADER_BYTES_MAX:
        raise FrameError(f"a header of {header_length} bytes is over the limit of {HEADER_BYTES_MAX} bytes")
    if header_end > len(frame):
        raise FrameError(f"header length {header_length} exceeds its frame of {len(frame)} bytes")
    serialize_type = frame[0]
    if serialize_type == SerializeType.JSON:
        command = json_header.decode(frame[LENGTH_BYTES:header_end])
    elif serialize_type == SerializeType.ROCKETMQ:
        command = binary_header.decode(frame[LENGTH_BYTES:header_end])
    else:
        raise FrameError(f"unknown header serialize type {serialize_type}")
    if header_end < len(frame):
        command.body = frame[header_end:]
    return command


def encode_frame(command: Command) -> bytes:
    """Encodes a command as one frame, ready for the socket. Raises FrameError when it is over the frame limit."""
    if command.serialize_type is SerializeType.JSON:
        header = json_header.encode(command)
    else:
        header = binary_header.encode(command)
    body = command.body
    length = LENGTH_BYTES + len(header) + len(body)
    if length + LENGTH_BYTES > FRAME_BYTES_MAX:
        raise FrameError(f"a frame of {length} bytes is over the limit of {FRAME_BYTES_MAX} bytes")
    word = (command.serialize_type << 24) | len(header)
    return b"".join((length.to_bytes(4, "big"), word.to_bytes(4, "big"), header, body))
