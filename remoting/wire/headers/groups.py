"""Headers of groups and their members: 35, 36, 38, 40, 203, 207, 208, 307, 309, 343, 345, 352."""

from __future__ import annotations

from remoting.wire.headers.typed import Header, Int32, Int64


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


class UnregisterClientHeader(
    Header, kw_only=True, rename=lambda name: "clientID" if name == "client_id" else _camel(name)
):
    """35 UNREGISTER_CLIENT. The wire's key is `clientID`, both letters capital."""

    client_id: str = ""
    producer_group: str | None = None
    consumer_group: str | None = None


class ConsumerGroupHeader(Header, kw_only=True):
    """38 GET_CONSUMER_LIST_BY_GROUP, 40 NOTIFY_CONSUMER_IDS_CHANGED, 203 GET_CONSUMER_CONNECTION_LIST."""

    consumer_group: str


class ProducerGroupHeader(Header, kw_only=True):
    """204 GET_PRODUCER_CONNECTION_LIST."""

    producer_group: str


class SendMessageBackHeader(Header, kw_only=True):
    """36 CONSUMER_SEND_MSG_BACK.

    `offset` is a commit-log offset. `delay_level` 0: the broker decides; < 0: dead letter at once.
    """

    offset: Int64
    group: str
    delay_level: Int32
    origin_msg_id: str | None = None
    origin_topic: str | None = None
    unit_mode: bool | None = None
    max_reconsume_times: Int32 | None = None
    bname: str | None = None
    # Ours, which Apache's broker ignores: why it failed (remoting/wire/failures.py).
    failure_class: str | None = None
    failure_text: str | None = None
    failure_listener: str | None = None
    failure_member: str | None = None
    failure_attempt: Int32 | None = None


class GetConsumeStatsHeader(Header, kw_only=True):
    """208 GET_CONSUME_STATS. `topic_list` is joined with ";"."""

    consumer_group: str
    topic: str | None = None
    topic_list: str | None = None


class GetConsumerRunningInfoHeader(Header, kw_only=True):
    """307 GET_CONSUMER_RUNNING_INFO."""

    consumer_group: str
    client_id: str
    jstack_enable: bool | None = None


class ConsumeDirectlyHeader(Header, kw_only=True):
    """309 CONSUME_MESSAGE_DIRECTLY. `msg_id` is an offset message id."""

    consumer_group: str
    client_id: str | None = None
    msg_id: str | None = None
    topic: str | None = None


class DeleteGroupHeader(Header, kw_only=True):
    """207 DELETE_SUBSCRIPTIONGROUP. `clean_offset`: deletes the group's committed offsets, too."""

    group_name: str
    clean_offset: bool = False


class GroupHeader(Header, kw_only=True):
    """343 QUERY_TOPICS_BY_CONSUMER, 352 GET_SUBSCRIPTIONGROUP_CONFIG."""

    group: str


class GroupTopicHeader(Header, kw_only=True):
    """345 QUERY_SUBSCRIPTION_BY_CONSUMER."""

    group: str
    topic: str | None = None
