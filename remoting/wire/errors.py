"""Errors of bytes and names, as one tree; each leaf carries the response code that the peer gets.

WireError
  FrameError            a frame cannot be read or written
    BrokenStream        the stream cannot be read on: the connection is closed
  HeaderError           a typed header lacks a field or holds garbage: SYSTEM_ERROR to the sender
  BodyError             a body cannot be parsed: SYSTEM_ERROR to the sender
  MessageError          a message breaks a rule: its own response code
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remoting.wire.codes import ResponseCode

if TYPE_CHECKING:
    from remoting.wire.command import Command


class WireError(Exception):
    """Base of all errors of the wire; `response_code` is what a server answers."""

    response_code: int = ResponseCode.SYSTEM_ERROR


class FrameError(WireError):
    """Raised when the byte stream is not RocketMQ's, or a frame breaks its limits. No response is possible."""


class BrokenStream(FrameError):
    """Raised when the stream cannot be read on; `commands` were complete before that place and are valid."""

    def __init__(self, text: str, commands: list[Command]) -> None:
        super().__init__(text)
        self.commands = commands


class HeaderError(WireError):
    """Raised when a command's extFields do not fit the typed header."""


class BodyError(WireError):
    """Raised when a command's body cannot be parsed."""


class MessageError(WireError):
    """Raised when a message, topic or group name breaks a rule; the text names the thing and the rule."""

    def __init__(self, text: str, response_code: int = ResponseCode.MESSAGE_ILLEGAL) -> None:
        super().__init__(text)
        self.response_code = response_code
