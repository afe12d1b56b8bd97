"""QUERY_MESSAGE (12): messages by a key (RocketMQ's `QueryMessageProcessor.queryMessage`).

A key is a message's unique key, or one of the words of its KEYS; times are store times. The newest messages are
answered, in the order in which they were stored. Unlike Apache's, the answer holds only messages that really have the
key (there, those of the same hash come along), and times are exact to the ms (there, to the second); messages of a
topic that was deleted since are answered only where `withDeleted` asks for them (there, always).
"""

from __future__ import annotations

from broker.engine.serving.requests import Request
from broker.engine.store.message_store import MessageStore
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.headers.messages import QueryMessageHeader, QueryMessageResponseHeader
from remoting.wire.headers.typed import read_header, write_header

# RocketMQ's `defaultQueryMaxNum`: a unique key may have been sent more than once.
UNIQUE_KEY_MESSAGES_MAX = 32


class QueryMessage:
    def __init__(self, store: MessageStore) -> None:
        self._store = store

    def __call__(self, request: Request) -> Command:
        command = request.command
        header = read_header(QueryMessageHeader, command.ext_fields)
        most = UNIQUE_KEY_MESSAGES_MAX if header.unique_key_query == "true" else header.max_num
        newest_first = self._store.query_by_key(
            header.topic,
            header.key,
            most,
            header.begin_timestamp,
            header.end_timestamp,
            with_deleted=bool(header.with_deleted),
        )
        if not newest_first:
            text = "can not find message, maybe time range not correct"
            return response(command, ResponseCode.QUERY_NOT_FOUND, text)
        last_offset, last_ms = self._store.last_indexed
        fields = write_header(
            QueryMessageResponseHeader(index_last_update_timestamp=last_ms, index_last_update_phyoffset=last_offset)
        )
        return response(command, ResponseCode.SUCCESS, ext_fields=fields, body=b"".join(reversed(newest_first)))
