"""Single requests for both brokers, by subject, and where ours answers otherwise on purpose."""

from __future__ import annotations

import json
from typing import Any

from remoting.wire.batch import encode_batch
from remoting.wire.codes import RequestCode as Code
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command
from remoting.wire.headers.send import SendMessageHeader, SendMessageHeaderV2
from remoting.wire.headers.typed import write_header

TOPIC = "answers"
QUEUE = {"topic": TOPIC, "queueId": "0"}
KNOWN = {"consumerGroup": "answers-known"}
UNKNOWN = {"consumerGroup": "answers-unknown"}


def send(body: bytes = b"body", code: int = Code.SEND_MESSAGE_V2, **fields: Any) -> Command:
    header = {
        "producer_group": "answers-senders",
        "topic": TOPIC,
        "queue_id": 0,
        "sys_flag": 0,
        "born_timestamp": 1_700_000_000_000,
        "flag": 0,
        "properties": "UNIQ_KEY\x01ABC\x02",
        **fields,
    }
    return Command(code=code, ext_fields=write_header(SendMessageHeaderV2(**header)), body=body)


def pull(**changes: str) -> Command:
    fields = {
        **QUEUE,
        **UNKNOWN,
        "queueOffset": "0",
        "maxMsgNums": "8",
        "sysFlag": "4",
        "commitOffset": "0",
        "suspendTimeoutMillis": "500",
        "subscription": "*",
        "subVersion": "0",
        "expressionType": "TAG",
    }
    return Command(code=Code.PULL_MESSAGE, ext_fields={**fields, **changes})


def asking(code: int, body: bytes = b"", **fields: str) -> Command:
    return Command(code=code, ext_fields=fields, body=body)


def signed(command: Command) -> Command:
    """As a client with an access key sends it."""
    command.ext_fields |= {"AccessKey": "key", "Signature": "c2lnbmF0dXJl", "SecurityToken": "token"}
    return command


def namespaced(command: Command) -> Command:
    command.ext_fields |= {"nsd": "true", "ns": "answers"}
    return command


def without(command: Command, name: str) -> Command:
    del command.ext_fields[name]
    return command


def heartbeat(**consumer: Any) -> bytes:
    """Of a client without groups, or with the one consumer."""
    return json.dumps(
        {"clientID": "answers@1", "consumerDataSet": [consumer] if consumer else [], "producerDataSet": []}
    ).encode()


def checking(kind: str, expression: str) -> Command:
    subscription = {"topic": TOPIC, "expressionType": kind, "subString": expression, "subVersion": 1}
    body = {"clientId": "answers@1", "group": "answers-known", "namespace": "", "subscriptionData": subscription}
    return asking(Code.CHECK_CLIENT_CONFIG, json.dumps(body).encode())


def consumer_data(group: str, **subscription: Any) -> dict[str, Any]:
    return {
        "groupName": group,
        "consumeType": "CONSUME_PASSIVELY",
        "messageModel": "CLUSTERING",
        "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET",
        "subscriptionDataSet": [{"topic": TOPIC, "subString": "*", "subVersion": 1, **subscription}],
        "unitMode": False,
    }


def query_message(key: str, **changes: str) -> Command:
    fields = {"topic": TOPIC, "key": key, "maxNum": "8", "beginTimestamp": "0", "endTimestamp": str(2**62)}
    return Command(code=Code.QUERY_MESSAGE, ext_fields={**fields, **changes})


def assignment(**changes: str) -> Command:
    body = {
        "topic": TOPIC,
        "consumerGroup": "answers-unknown",
        "clientId": "answers@1",
        "strategyName": "AVG",
        "messageModel": "CLUSTERING",
    }
    return asking(Code.QUERY_ASSIGNMENT, json.dumps(body | changes).encode())


def request_mode(mode: str, **changes: str) -> Command:
    body = {"topic": TOPIC, "consumerGroup": "answers-known", "mode": mode, "popShareQueueNum": 0}
    return asking(Code.SET_MESSAGE_REQUEST_MODE, json.dumps(body | changes).encode())


def reply(code: int = Code.SEND_REPLY_MESSAGE_V2, **changes: Any) -> Command:
    kind = SendMessageHeader if code == Code.SEND_REPLY_MESSAGE else SendMessageHeaderV2
    header = {
        "producer_group": "answers-repliers",
        "topic": TOPIC,
        "queue_id": 0,
        "sys_flag": 0,
        "born_timestamp": 1_700_000_000_000,
        "flag": 0,
        "properties": "REPLY_TO_CLIENT\x01nobody@1\x02CORRELATION_ID\x011\x02",
        **changes,
    }
    return Command(code=code, ext_fields=write_header(kind(**header)), body=b"42")


def locking(code: int, **changes: Any) -> Command:
    body = {
        "clientId": "answers@1",
        "consumerGroup": "answers-locking",
        "mqSet": [{"topic": TOPIC, "brokerName": "broker-a", "queueId": 0}],
        "onlyThisBroker": False,
    }
    return asking(code, json.dumps(body | changes).encode())


def topic_of_tools(**changes: str) -> Command:
    fields = {
        "topic": "answers-tools",
        "defaultTopic": "TBW102",
        "readQueueNums": "2",
        "writeQueueNums": "2",
        "perm": "6",
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": "0",
        "order": "false",
    }
    return asking(Code.UPDATE_AND_CREATE_TOPIC, **(fields | changes))


def topics_of_tools(*names: str) -> bytes:
    config = {"readQueueNums": 2, "writeQueueNums": 2, "perm": 6, "attributes": {"+message.type": "FIFO"}}
    return json.dumps({"topicConfigList": [{"topicName": name, **config} for name in names]}).encode()


def group_of_tools(**config: Any) -> Command:
    body = {"groupName": "answers-tools", **config}
    return asking(Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, json.dumps(body).encode())


def reset(**changes: str) -> Command:
    fields = {"topic": "answers-tools", "group": "answers-tools", "timestamp": "0", "isForce": "true"}
    return asking(Code.INVOKE_BROKER_TO_RESET_OFFSET, **({**fields, "queueId": "-1", "offset": "-1"} | changes))


BATCH = encode_batch([(0, b"one", {"UNIQ_KEY": "A"}), (0, b"two", {"UNIQ_KEY": "B"})])
BROKER_CASES = {
    "unknown code": asking(4711),
    "send": send(),
    "send, any queue": send(queue_id=-1),
    "send to a new topic": send(topic="answers-new"),
    "send, queue beyond the topic's": send(queue_id=77),
    "send, illegal topic": send(topic="an illegal topic"),
    "send, topic too long": send(topic="t" * 128),
    "send, empty topic": send(topic=""),
    "send to the schedule topic": send(topic="SCHEDULE_TOPIC_XXXX"),
    "send to the default topic": send(topic="TBW102"),
    "send, default topic unknown": send(topic="answers-no-default", default_topic="answers-nothing"),
    "send, empty body": send(b""),
    "send, body too large": send(b"x" * (4 * 1024 * 1024 + 1)),
    "send, properties too long": send(properties="k\x01" + "v" * 32_800 + "\x02"),
    "send, level beyond 18": send(properties="DELAY\x0199\x02"),
    "send, level not a number": send(properties="DELAY\x01soon\x02"),
    "send, number missing": without(send(), "e"),
    "send, number garbage": asking(Code.SEND_MESSAGE_V2, **{**send().ext_fields, "e": "many"}),
    "send, signed": signed(send()),
    "send, signed by a namespace of the second kind": namespaced(send()),
    "send to light queues": send(properties="INNER_MULTI_DISPATCH\x01%LMQ%answers-a,%LMQ%answers-b\x02"),
    "send to a light queue's name": send(topic="%LMQ%answers-light"),
    "send to a retry topic": send(topic="%RETRY%answers-known"),
    "batch": send(BATCH, Code.SEND_BATCH_MESSAGE, batch=True),
    "batch to a retry topic": send(BATCH, Code.SEND_BATCH_MESSAGE, batch=True, topic="%RETRY%answers-known"),
    "batch of garbage": send(b"\x00\x00", Code.SEND_BATCH_MESSAGE, batch=True),
    "pull": pull(),
    "pull, signed": signed(pull()),
    "pull of a light queue": pull(topic="%LMQ%answers-a"),
    "pull, no subscription": pull(sysFlag="0"),
    "pull, unknown topic": pull(topic="answers-missing"),
    "pull, queue beyond the topic's": pull(queueId="77"),
    "pull, negative queue": pull(queueId="-1"),
    "pull beyond the end": pull(queueOffset="9999"),
    "pull before the start": pull(queueOffset="-5"),
    "pull at the end of an empty queue": pull(topic="answers-new", queueId="3"),
    "pull beyond an empty queue": pull(topic="answers-new", queueId="3", queueOffset="7"),
    "pull, other tag": pull(subscription="other"),
    "pull, broken SQL": pull(expressionType="SQL92", subscription="a >"),
    "pull, SQL that lets it through": pull(expressionType="SQL92", subscription="UNIQ_KEY = 'ABC'"),
    "pull, SQL that lets nothing through": pull(expressionType="SQL92", subscription="UNIQ_KEY = 'other'"),
    "pull, SQL that cannot be compared": pull(expressionType="SQL92", subscription="UNIQ_KEY > 5"),
    "check of SQL": checking("SQL92", "a > 5 AND b IN ('x')"),
    "check of broken SQL": checking("SQL92", "a >"),
    "check of no SQL": checking("SQL92", ""),
    "check of tags": checking("TAG", "a || b"),
    "check of an unknown kind of expression": checking("REGEX", "a"),
    "pull, unknown kind of expression": pull(expressionType="REGEX", subscription="a"),
    "pull, number missing": without(pull(), "queueOffset"),
    "query committed": asking(Code.QUERY_CONSUMER_OFFSET, **QUEUE, **KNOWN),
    "query committed of an unknown group": asking(Code.QUERY_CONSUMER_OFFSET, **QUEUE, **UNKNOWN),
    "query committed, never zero": asking(Code.QUERY_CONSUMER_OFFSET, **QUEUE, **UNKNOWN, setZeroIfNotFound="false"),
    "query committed, unknown topic": asking(
        Code.QUERY_CONSUMER_OFFSET, **{**QUEUE, "topic": "answers-missing"}, **UNKNOWN
    ),
    "commit": asking(Code.UPDATE_CONSUMER_OFFSET, **QUEUE, **KNOWN, commitOffset="1"),
    "commit, unknown group": asking(
        Code.UPDATE_CONSUMER_OFFSET, **QUEUE, consumerGroup="answers-uncommitted", commitOffset="1"
    ),
    "commit, unknown topic": asking(
        Code.UPDATE_CONSUMER_OFFSET, topic="answers-missing", queueId="0", commitOffset="1", **KNOWN
    ),
    "commit, offset missing": asking(Code.UPDATE_CONSUMER_OFFSET, **QUEUE, **KNOWN),
    "commit, queue missing": asking(Code.UPDATE_CONSUMER_OFFSET, topic=TOPIC, commitOffset="1", **KNOWN),
    "max offset": asking(Code.GET_MAX_OFFSET, **QUEUE),
    "max offset, unknown topic": asking(Code.GET_MAX_OFFSET, topic="answers-missing", queueId="0"),
    "max offset, queue missing": asking(Code.GET_MAX_OFFSET, topic=TOPIC),
    "min offset": asking(Code.GET_MIN_OFFSET, **QUEUE),
    "min offset, unknown queue": asking(Code.GET_MIN_OFFSET, topic=TOPIC, queueId="77"),
    "search": asking(Code.SEARCH_OFFSET_BY_TIMESTAMP, **QUEUE, timestamp="0"),
    "search, future": asking(Code.SEARCH_OFFSET_BY_TIMESTAMP, **QUEUE, timestamp="9999999999999"),
    "search, unknown topic": asking(
        Code.SEARCH_OFFSET_BY_TIMESTAMP, topic="answers-missing", queueId="0", timestamp="0"
    ),
    "heartbeat": asking(Code.HEART_BEAT, heartbeat()),
    "heartbeat, garbage": asking(Code.HEART_BEAT, b"no json"),
    "heartbeat, no body": asking(Code.HEART_BEAT),
    "heartbeat of a consumer": asking(
        Code.HEART_BEAT,
        heartbeat(**consumer_data("answers-beating")),
    ),
    "unregister": asking(Code.UNREGISTER_CLIENT, clientID="answers@1", consumerGroup="answers-beating"),
    "unregister, nobody": asking(Code.UNREGISTER_CLIENT, clientID="answers@2"),
    "members of an unknown group": asking(Code.GET_CONSUMER_LIST_BY_GROUP, **UNKNOWN),
    "connections of an unknown group": asking(Code.GET_CONSUMER_CONNECTION_LIST, **UNKNOWN),
    "stats of a group": asking(Code.GET_CONSUME_STATS, **KNOWN),
    "stats of an unknown group": asking(Code.GET_CONSUME_STATS, **UNKNOWN),
    "running info of nobody": asking(Code.GET_CONSUMER_RUNNING_INFO, **UNKNOWN, clientId="nobody"),
    "topics": asking(Code.GET_ALL_TOPIC_CONFIG),
    "groups": asking(Code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG),
    "committed offsets": asking(Code.GET_ALL_CONSUMER_OFFSET),
    "system topics": asking(Code.GET_SYSTEM_TOPIC_LIST_FROM_BROKER),
    "topic": asking(Code.GET_TOPIC_CONFIG, topic=TOPIC),
    "missing topic": asking(Code.GET_TOPIC_CONFIG, topic="answers-missing"),
    "stats of a topic": asking(Code.GET_TOPIC_STATS_INFO, topic=TOPIC),
    "stats of a missing topic": asking(Code.GET_TOPIC_STATS_INFO, topic="answers-missing"),
    "groups of a topic": asking(Code.QUERY_TOPIC_CONSUME_BY_WHO, topic=TOPIC),
    "groups of a missing topic": asking(Code.QUERY_TOPIC_CONSUME_BY_WHO, topic="answers-missing"),
    "runtime info": asking(Code.GET_BROKER_RUNTIME_INFO),
    "producers of an unknown group": asking(Code.GET_PRODUCER_CONNECTION_LIST, producerGroup="answers-unknown"),
    "earliest store time": asking(Code.GET_EARLIEST_MSG_STORETIME, **QUEUE),
    "earliest store time of a missing topic": asking(
        Code.GET_EARLIEST_MSG_STORETIME, topic="answers-missing", queueId="0"
    ),
    "message": asking(Code.VIEW_MESSAGE_BY_ID, offset="0"),
    "message that is not there": asking(Code.VIEW_MESSAGE_BY_ID, offset="99999999"),
    "messages by unique key": query_message("ABC", _UNIQUE_KEY_QUERY="true"),
    "messages by key": query_message("ABC"),
    "messages by a missing key": query_message("missing"),
    "messages by key, of another time": query_message("ABC", endTimestamp="1"),
    "messages by key, none wanted": query_message("ABC", maxNum="0"),
    "messages by key, topic missing": query_message("ABC", topic="answers-missing"),
    "messages by key, number missing": without(query_message("ABC"), "maxNum"),
    "queue entries": asking(Code.QUERY_CONSUME_QUEUE, **QUEUE, index="0", count="10"),
    "queue entries with a group": asking(Code.QUERY_CONSUME_QUEUE, **QUEUE, index="0", count="1", **KNOWN),
    "queue entries beyond the end": asking(Code.QUERY_CONSUME_QUEUE, **QUEUE, index="9999", count="10"),
    "assignment of nobody": assignment(),
    "assignment of a broadcasting client": assignment(messageModel="BROADCASTING"),
    "assignment of a missing topic": assignment(topic="answers-missing"),
    "assignment, body missing": asking(Code.QUERY_ASSIGNMENT),
    "mode": request_mode("PULL"),
    "mode of a retry topic": request_mode("PULL", topic="%RETRY%answers-known"),
    "mode of a missing topic": request_mode("PULL", topic="answers-missing"),
    "mode of POP": request_mode("POP"),
    "modes": asking(Code.GET_ALL_MESSAGE_REQUEST_MODE),
    "reply that names nobody": reply(properties=""),
    "reply to a client that is not here": reply(),
    "reply, long names": reply(code=Code.SEND_REPLY_MESSAGE),
    "reply, topic missing": reply(topic="answers-missing", default_topic="answers-nothing"),
    "lock": locking(Code.LOCK_BATCH_MQ),
    "lock again": locking(Code.LOCK_BATCH_MQ, onlyThisBroker=True),
    "lock another's": locking(Code.LOCK_BATCH_MQ, clientId="answers@2"),
    "lock nothing": locking(Code.LOCK_BATCH_MQ, mqSet=[]),
    "lock without a body": asking(Code.LOCK_BATCH_MQ),
    "lock without a client": locking(Code.LOCK_BATCH_MQ, clientId=None),
    "lock without a group": locking(Code.LOCK_BATCH_MQ, consumerGroup=None),
    "unlock another's": locking(Code.UNLOCK_BATCH_MQ, clientId="answers@2"),
    "unlock": locking(Code.UNLOCK_BATCH_MQ),
    "unlock again": locking(Code.UNLOCK_BATCH_MQ),
    "unlock, garbage": asking(Code.UNLOCK_BATCH_MQ, b"{torn"),
    "make a topic": topic_of_tools(),
    "change a topic": topic_of_tools(readQueueNums="4", attributes="+message.type=FIFO"),
    "change a topic, the same again": topic_of_tools(readQueueNums="4"),
    "change a topic, unknown attribute": topic_of_tools(attributes="+colour=red"),
    "change a topic, attribute that was not there": topic_of_tools(attributes="-reserve.time"),
    "change a topic, attribute without a sign": topic_of_tools(attributes="message.type=FIFO"),
    "change a topic, mixed messages": topic_of_tools(attributes="+message.type=MIXED"),
    "change a topic, filter type": topic_of_tools(topicFilterType="NO_TAG"),
    "change a topic, number missing": without(topic_of_tools(), "readQueueNums"),
    "change a topic, number garbage": topic_of_tools(readQueueNums="many"),
    "change a topic, negative number": topic_of_tools(topic="answers-odd", readQueueNums="-1"),
    "change a topic, odd permission": topic_of_tools(topic="answers-odd", perm="99"),
    "make an illegal topic": topic_of_tools(topic="an illegal topic"),
    "make a topic without a name": topic_of_tools(topic=""),
    "change a system topic": topic_of_tools(topic="SCHEDULE_TOPIC_XXXX"),
    "change the broker's topic": topic_of_tools(topic="broker-a"),
    "make topics": asking(Code.UPDATE_AND_CREATE_TOPIC_LIST, topics_of_tools("answers-tools-2", "answers-tools-3")),
    "make topics, one illegal": asking(
        Code.UPDATE_AND_CREATE_TOPIC_LIST, topics_of_tools("answers-tools-4", "an illegal")
    ),
    "make topics, garbage": asking(Code.UPDATE_AND_CREATE_TOPIC_LIST, b"{torn"),
    "make groups": asking(
        Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, b'{"groupConfigList":[{"groupName":"answers-tools-2"}]}'
    ),
    "make groups, one illegal": asking(
        Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, b'{"groupConfigList":[{"groupName":"an illegal group"}]}'
    ),
    "make a group": group_of_tools(retryMaxTimes=3),
    "make an illegal group": group_of_tools(groupName="an illegal group"),
    "make a group without a name": group_of_tools(groupName=""),
    "make a group with an attribute": group_of_tools(attributes={"+colour": "red"}),
    "make a group, negative number": group_of_tools(groupName="answers-odd", retryQueueNums=-1),
    "group": asking(Code.GET_SUBSCRIPTIONGROUP_CONFIG, group="answers-tools"),
    "group that was never named": asking(Code.GET_SUBSCRIPTIONGROUP_CONFIG, group="answers-asked"),
    "illegal group": asking(Code.GET_SUBSCRIPTIONGROUP_CONFIG, group="an illegal group"),
    "reset": reset(),
    "reset to the end": reset(timestamp="-1"),
    "reset one queue": reset(queueId="1", offset="0"),
    "reset one queue to beyond its end": reset(queueId="1", offset="2"),
    "reset one queue to a negative offset": reset(queueId="1", offset="-2"),
    "reset a queue that is not there": reset(topic=TOPIC, group="answers-known", queueId="99"),
    "reset on a missing topic": reset(topic="answers-missing"),
    "reset of a missing group": reset(group="answers-never"),
    "reset, time missing": without(reset(), "timestamp"),
    "commit after a reset": asking(
        Code.UPDATE_CONSUMER_OFFSET, topic="answers-tools", queueId="0", consumerGroup="answers-tools", commitOffset="7"
    ),
    "query after a reset": asking(
        Code.QUERY_CONSUMER_OFFSET, topic="answers-tools", queueId="0", consumerGroup="answers-tools"
    ),
    "pull after a reset": pull(topic="answers-tools", consumerGroup="answers-tools", queueOffset="7"),
    "pull after that": pull(topic="answers-tools", consumerGroup="answers-tools", sysFlag="4"),
    "progress of a group's members": asking(
        Code.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, topic=TOPIC, group="answers-never"
    ),
    "consume directly at nobody": asking(
        Code.CONSUME_MESSAGE_DIRECTLY, **UNKNOWN, clientId="nobody", msgId="7F00000100002A9F0000000000000000"
    ),
    "consume directly, garbage": asking(Code.CONSUME_MESSAGE_DIRECTLY, **UNKNOWN, clientId="nobody", msgId="garbage"),
    "consume directly, no message": asking(Code.CONSUME_MESSAGE_DIRECTLY, **UNKNOWN, clientId="nobody"),
    "time span": asking(Code.QUERY_CONSUME_TIME_SPAN, topic=TOPIC, group="answers-known"),
    "time span of a missing topic": asking(
        Code.QUERY_CONSUME_TIME_SPAN, topic="answers-missing", group="answers-known"
    ),
    "producers": asking(Code.GET_ALL_PRODUCER_INFO),
    "topics of a group": asking(Code.QUERY_TOPICS_BY_CONSUMER, group="answers-known"),
    "topics of a missing group": asking(Code.QUERY_TOPICS_BY_CONSUMER, group="answers-never"),
    "subscription": asking(Code.QUERY_SUBSCRIPTION_BY_CONSUMER, group="answers-known", topic=TOPIC),
    "subscription of a missing group": asking(Code.QUERY_SUBSCRIPTION_BY_CONSUMER, group="answers-never", topic=TOPIC),
    "delete a group": asking(Code.DELETE_SUBSCRIPTIONGROUP, groupName="answers-tools", cleanOffset="true"),
    "delete a missing group": asking(Code.DELETE_SUBSCRIPTIONGROUP, groupName="answers-never"),
    "delete a group without a name": asking(Code.DELETE_SUBSCRIPTIONGROUP),
    "delete a topic": asking(Code.DELETE_TOPIC_IN_BROKER, topic="answers-tools"),
    "delete a missing topic": asking(Code.DELETE_TOPIC_IN_BROKER, topic="answers-never"),
    "delete a topic without a name": asking(Code.DELETE_TOPIC_IN_BROKER, topic=""),
    "delete a system topic": asking(Code.DELETE_TOPIC_IN_BROKER, topic="TBW102"),
    "clone progress": asking(
        Code.CLONE_GROUP_OFFSET, srcGroup="answers-known", destGroup="answers-clone", topic=TOPIC, offline="true"
    ),
    "progress of delays": asking(Code.GET_ALL_DELAY_OFFSET),
    "progress of all groups": asking(Code.GET_BROKER_CONSUME_STATS, isOrder="false"),
    "counts that do not exist": asking(Code.VIEW_BROKER_STATS_DATA, statsName="answers", statsKey="missing"),
    "send back what is not there": asking(
        Code.CONSUMER_SEND_MSG_BACK, group="answers-known", offset="99999999", delayLevel="0", originTopic=TOPIC
    ),
    "send back for an unknown group": asking(
        Code.CONSUMER_SEND_MSG_BACK, group="answers-unknown-2", offset="0", delayLevel="0", originTopic=TOPIC
    ),
}
# Where Apache fails inside (a Java exception's name is its answer), or lets everything through because it cannot read
# the expression that a pull brings along. And POP, which this broker has not.
OURS_DIFFER = {
    "send, empty topic": ResponseCode.INVALID_PARAMETER,
    "send, empty body": ResponseCode.MESSAGE_ILLEGAL,
    "send, level not a number": ResponseCode.MESSAGE_ILLEGAL,
    "batch of garbage": ResponseCode.MESSAGE_ILLEGAL,
    "pull, broken SQL": ResponseCode.SUBSCRIPTION_PARSE_FAILED,
    "pull, unknown kind of expression": ResponseCode.SUBSCRIPTION_PARSE_FAILED,
    "mode of POP": ResponseCode.NO_PERMISSION,
    "lock without a client": ResponseCode.SYSTEM_ERROR,
    "make a topic without a name": ResponseCode.INVALID_PARAMETER,
    "change a topic, negative number": ResponseCode.INVALID_PARAMETER,
    "change a topic, odd permission": ResponseCode.INVALID_PARAMETER,
    "make a group, negative number": ResponseCode.INVALID_PARAMETER,
    "reset a queue that is not there": ResponseCode.INVALID_PARAMETER,
    "reset, time missing": ResponseCode.SYSTEM_ERROR,
}
NAMESRV_CASES = {
    "unknown code": asking(4711),
    "route": asking(Code.GET_ROUTEINFO_BY_TOPIC, topic=TOPIC),
    "route of a missing topic": asking(Code.GET_ROUTEINFO_BY_TOPIC, topic="answers-missing"),
    "clusters": asking(Code.GET_BROKER_CLUSTER_INFO),
    "topics": asking(Code.GET_ALL_TOPIC_LIST_FROM_NAMESERVER),
    "topics of a missing cluster": asking(Code.GET_TOPICS_BY_CLUSTER, cluster="answers-missing"),
    "system topics": asking(Code.GET_SYSTEM_TOPIC_LIST_FROM_NS),
    "topics of units": asking(Code.GET_UNIT_TOPIC_LIST),
    "topics that units subscribe to": asking(Code.GET_HAS_UNIT_SUB_TOPIC_LIST),
    "topics of no unit that units subscribe to": asking(Code.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST),
    "members of a broker": asking(Code.GET_BROKER_MEMBER_GROUP, clusterName="answers-missing", brokerName="nobody"),
    "put a value": asking(Code.PUT_KV_CONFIG, namespace="answers", key="a", value="1"),
    "put a value without a name": asking(Code.PUT_KV_CONFIG, value="1"),
    "value": asking(Code.GET_KV_CONFIG, namespace="answers", key="a"),
    "missing value": asking(Code.GET_KV_CONFIG, namespace="answers", key="missing"),
    "values": asking(Code.GET_KVLIST_BY_NAMESPACE, namespace="answers"),
    "values of a missing namespace": asking(Code.GET_KVLIST_BY_NAMESPACE, namespace="answers-missing"),
    "delete a value": asking(Code.DELETE_KV_CONFIG, namespace="answers", key="a"),
    "delete a missing value": asking(Code.DELETE_KV_CONFIG, namespace="answers-missing", key="a"),
    "wipe nobody's permission": asking(Code.WIPE_WRITE_PERM_OF_BROKER, brokerName="nobody"),
    "add a permission": asking(Code.ADD_WRITE_PERM_OF_BROKER, brokerName="broker-a"),
    "settings": asking(Code.GET_NAMESRV_CONFIG),
    "change of settings": asking(Code.UPDATE_NAMESRV_CONFIG, b"orderMessageEnable=false\nanswersMissing=x"),
    "change of a setting that nobody may change": asking(Code.UPDATE_NAMESRV_CONFIG, b"kvConfigPath=x"),
    "goodbye of another broker": asking(
        Code.UNREGISTER_BROKER, clusterName="c", brokerAddr="10.1.1.1:1", brokerName="nobody", brokerId="0"
    ),
    "delete a missing topic": asking(Code.DELETE_TOPIC_IN_NAMESRV, topic="answers-missing"),
}
# This name server serves its own broker.
NAMESRV_DIFFERS = {
    "another broker": asking(
        Code.REGISTER_BROKER, clusterName="c", brokerAddr="10.1.1.1:1", brokerName="nobody", brokerId="0"
    ),
    "another broker's topic": asking(Code.REGISTER_TOPIC_IN_NAMESRV, topic="answers-missing"),
    "another broker's heartbeat": asking(
        Code.BROKER_HEARTBEAT, clusterName="c", brokerAddr="10.1.1.1:1", brokerName="nobody"
    ),
    "another broker's version": asking(Code.QUERY_DATA_VERSION, brokerName="nobody", brokerAddr="10.1.1.1:1"),
}
