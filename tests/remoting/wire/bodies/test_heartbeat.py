from __future__ import annotations

import json

import pytest

from remoting.wire.bodies.document import write_body
from remoting.wire.bodies.heartbeat import ConsumerData, HeartbeatData, ProducerData, SubscriptionData, read_heartbeat
from remoting.wire.errors import BodyError
from remoting.wire.limits import LENIENT_BODY_BYTES_MAX

# As Java writes it.
JAVA = (
    b'{"clientID":"10.0.0.5@1234#5678",'
    b'"consumerDataSet":[{"consumeFromWhere":"CONSUME_FROM_LAST_OFFSET","consumeType":"CONSUME_PASSIVELY",'
    b'"groupName":"g","messageModel":"CLUSTERING","subscriptionDataSet":[{"classFilterMode":false,'
    b'"codeSet":[2598919],"expressionType":"TAG","subString":"TagA","subVersion":1700000000000,"tagsSet":["TagA"],'
    b'"topic":"T"}],"unitMode":false}],"heartbeatFingerprint":0,"producerDataSet":[{"groupName":"pg"}],'
    b'"withoutSub":false}'
)
SUBSCRIPTION = SubscriptionData(
    code_set=[2598919], sub_string="TagA", sub_version=1700000000000, tags_set=["TagA"], topic="T"
)
MEANING = HeartbeatData(
    client_id="10.0.0.5@1234#5678",
    consumer_data_set=[ConsumerData(group_name="g", subscription_data_set=[SUBSCRIPTION])],
    producer_data_set=[ProducerData(group_name="pg")],
)


def consumer(**changes: object) -> ConsumerData:
    """What is read of Java's heartbeat when its consumer entry has other values; None takes a key away."""
    document = json.loads(JAVA)
    (entry,) = document["consumerDataSet"]
    for key, value in changes.items():
        entry[key] = value
        if value is None:
            del entry[key]
    (read,) = read_heartbeat(json.dumps(document).encode()).consumer_data_set
    return read


def test_javas_heartbeat_is_read() -> None:
    assert read_heartbeat(JAVA) == MEANING


def test_a_heartbeat_is_written_as_java_writes_it() -> None:
    assert json.loads(write_body(MEANING)) == json.loads(JAVA)
    assert b" " not in write_body(MEANING)


def test_cpp_writes_enums_as_numbers_versions_as_text_and_leaves_much_out() -> None:
    cpp = (
        b'{"clientID":"10.0.0.5@1","consumerDataSet":[{"consumeFromWhere":4,"consumeType":1,"groupName":"g",'
        b'"messageModel":0,"subscriptionDataSet":[{"codeSet":["2598919"],"subString":"TagA",'
        b'"subVersion":"1700000000000","tagsSet":["TagA"],"topic":"T"}]}],"producerDataSet":[]}\n'
    )
    (read,) = read_heartbeat(cpp).consumer_data_set
    assert read.consume_from_where == "CONSUME_FROM_FIRST_OFFSET"
    assert read.consume_type == "CONSUME_PASSIVELY"
    assert read.message_model == "BROADCASTING"
    assert read.subscription_data_set == [SUBSCRIPTION]


def test_go_writes_codes_as_text_and_versions_in_nanoseconds() -> None:
    read = consumer(
        subscriptionDataSet=[
            {"topic": "T", "subString": "TagA", "tagsSet": ["TagA"], "codeSet": ["2598919"], "subVersion": 17 * 10**17}
        ]
    )
    assert read.subscription_data_set[0].code_set == [2598919]
    assert read.subscription_data_set[0].sub_version == 17 * 10**17


def test_an_object_shared_by_two_entries_is_read_twice() -> None:
    """fastjson writes the second as a reference."""
    shared = JAVA.replace(
        b'"unitMode":false}]',
        b'"unitMode":false},{"groupName":"h","subscriptionDataSet":[{"$ref":"$.consumerDataSet[0].subscriptionDataSet[0]"}]}]',
    )
    first, second = read_heartbeat(shared).consumer_data_set
    assert first.subscription_data_set == second.subscription_data_set == [SUBSCRIPTION]


@pytest.mark.parametrize("value", ["CONSUME_SOMEHOW", 17, -1, None, True, {}], ids=repr)
def test_an_enum_that_no_table_knows_counts_as_the_default(value: object) -> None:
    assert consumer(consumeType=value).consume_type in ("CONSUME_PASSIVELY",)


def test_nulls_and_missing_parts_count_as_absent() -> None:
    read = read_heartbeat(b'{"clientID":null,"consumerDataSet":null,"producerDataSet":[null]}')
    assert read == HeartbeatData()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"5",
        b'{"clientID":5}',
        b'{"consumerDataSet":5}',
        b'{"consumerDataSet":[5]}',
        b'{"consumerDataSet":["g"]}',
        b'{"consumerDataSet":{"a":1}}',
        b'{"consumerDataSet":[{"groupName":"g","subscriptionDataSet":[{"subString":"*"}]}]}',
        b'{"consumerDataSet":[{}]}',
        b'{"producerDataSet":[{"groupName":{}}]}',
        b'{"consumerDataSet":[{"consumeType":[],"groupName":"g"}]}',
    ],
)
def test_a_heartbeat_that_makes_no_sense_is_a_body_error_or_read_with_defaults(body: bytes) -> None:
    try:
        read_heartbeat(body)
    except BodyError:
        pass


def test_a_long_heartbeat_must_be_standard_json() -> None:
    padding = "x" * LENIENT_BODY_BYTES_MAX
    standard = json.dumps({"clientID": padding}).encode()
    assert read_heartbeat(standard).client_id == padding
    with pytest.raises(BodyError, match="bytes of JSON that is not standard"):
        read_heartbeat(standard.replace(b'"clientID"', b"clientID"))
