"""Messages that clients send, send back, recall, and the ends of transactions."""

from __future__ import annotations

from broker.engine.config import BrokerConfig
from broker.engine.groups.consumer_groups import ConsumerGroups
from broker.engine.processors.consumer_send_msg_back import ConsumerSendMsgBack
from broker.engine.processors.end_transaction import EndTransaction
from broker.engine.processors.recall_message import RecallMessage
from broker.engine.processors.resume_check_half_message import ResumeCheckHalfMessage
from broker.engine.processors.send_message import SendMessage
from broker.engine.processors.send_reply_message import SendReplyMessage
from broker.engine.sending.accepting import Accepting
from broker.engine.sending.send_target import SendTarget
from broker.engine.serving.requests import Processors
from broker.engine.store.message_store import Clock, MessageStore
from broker.engine.topics.topic_configs import Topics
from broker.engine.transactions.transactions import Transactions
from remoting.wire.codes import RequestCode as Code
from remoting.wire.message_id import UniqueKeyFactory


def sending_processors(
    *,
    config: BrokerConfig,
    store: MessageStore,
    topics: Topics,
    groups: ConsumerGroups,
    accepting: Accepting,
    transactions: Transactions,
    clock: Clock,
) -> Processors:
    send = SendMessage(
        topics=topics,
        groups=groups.configs,
        accepting=accepting,
        unique_keys=UniqueKeyFactory(),
        config=config,
        locks=groups.locks,
        transactions=transactions,
    )
    send_reply = SendReplyMessage(
        target=SendTarget(topics, config), members=groups.members, accepting=accepting, config=config, clock=clock
    )
    return {
        Code.SEND_MESSAGE: send,
        Code.SEND_MESSAGE_V2: send,
        Code.SEND_BATCH_MESSAGE: send,
        Code.SEND_REPLY_MESSAGE: send_reply,
        Code.SEND_REPLY_MESSAGE_V2: send_reply,
        Code.CONSUMER_SEND_MSG_BACK: ConsumerSendMsgBack(
            topics=topics, groups=groups.configs, store=store, accepting=accepting, config=config
        ),
        Code.RECALL_MESSAGE: RecallMessage(topics=topics, accepting=accepting, config=config, clock=clock),
        Code.END_TRANSACTION: EndTransaction(store=store, transactions=transactions, config=config, clock=clock),
        Code.RESUME_CHECK_HALF_MESSAGE: ResumeCheckHalfMessage(store, transactions),
    }
