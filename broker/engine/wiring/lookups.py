"""Messages and queue offsets as the store has them."""

from __future__ import annotations

from broker.engine.groups.members import Members
from broker.engine.processors.get_earliest_msg_storetime import GetEarliestMsgStoretime
from broker.engine.processors.get_max_offset import GetQueueEnd
from broker.engine.processors.query_consume_queue import QueryConsumeQueue
from broker.engine.processors.query_message import QueryMessage
from broker.engine.processors.search_offset_by_timestamp import SearchOffsetByTimestamp
from broker.engine.processors.view_message_by_id import ViewMessageById
from broker.engine.serving.requests import Processors
from broker.engine.store.message_store import MessageStore
from remoting.wire.codes import RequestCode as Code


def lookup_processors(*, store: MessageStore, members: Members) -> Processors:
    return {
        Code.GET_MAX_OFFSET: GetQueueEnd(store.max_offset),
        Code.GET_MIN_OFFSET: GetQueueEnd(store.min_offset),
        Code.SEARCH_OFFSET_BY_TIMESTAMP: SearchOffsetByTimestamp(store),
        Code.GET_EARLIEST_MSG_STORETIME: GetEarliestMsgStoretime(store),
        Code.VIEW_MESSAGE_BY_ID: ViewMessageById(store),
        Code.QUERY_MESSAGE: QueryMessage(store),
        Code.QUERY_CONSUME_QUEUE: QueryConsumeQueue(members, store),
    }
