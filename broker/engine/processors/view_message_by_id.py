"""VIEW_MESSAGE_BY_ID (33): one stored message by its place in the commit log."""

from __future__ import annotations

from broker.engine.serving.requests import Request
from broker.engine.store.message_store import MessageStore
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.errors import MessageError
from remoting.wire.headers.messages import ViewMessageHeader
from remoting.wire.headers.typed import read_header


class ViewMessageById:
    def __init__(self, store: MessageStore) -> None:
        self._store = store

    def __call__(self, request: Request) -> Command:
        """Raises MessageError when no message begins there."""
        header = read_header(ViewMessageHeader, request.command.ext_fields)
        record = self._store.record_at(header.offset)
        if record is None:
            raise MessageError(f"can not find message by the offset, {header.offset}", ResponseCode.SYSTEM_ERROR)
        return response(request.command, ResponseCode.SUCCESS, body=record)
