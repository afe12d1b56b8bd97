from __future__ import annotations

from remoting.wire.bodies.trace import RECORDS_MAX, TraceRecord, read_trace, write_trace


def line(*words: str) -> bytes:
    return "\x01".join(words).encode() + b"\x02"


# As `TraceDataEncoder` of 5.4.0 writes them.
PUB = line(
    *("Pub", "1700000000000", "DefaultRegion", "senders", "orders", "ID1", "a", "k1 k2", "10.0.0.5:10911", "5", "3"),
    *("0", "OFFSET-ID", "true", "10.0.0.9"),
)
BEFORE = line("SubBefore", "1700000000100", "null", "billing", "R1", "ID1", "2", "k1")
AFTER = line("SubAfter", "R1", "ID1", "7", "false", "k1", "4", "1700000000107", "billing")
END = line(
    *("EndTransaction", "1700000000200", "DefaultRegion", "senders", "orders", "ID1", "a", "k1", "10.0.0.5:10911"),
    *("2", "T1", "COMMIT_MESSAGE", "true"),
)


def test_the_steps_of_a_message_are_read() -> None:
    pub, before, after, end = read_trace(PUB + BEFORE + AFTER + END)
    assert (pub.kind, pub.group, pub.topic, pub.message_id) == ("Pub", "senders", "orders", "ID1")
    assert (pub.cost_ms, pub.is_success, pub.offset_message_id, pub.client_host) == (3, True, "OFFSET-ID", "10.0.0.9")
    assert before == TraceRecord(
        kind="SubBefore",
        message_id="ID1",
        timestamp_ms=1_700_000_000_100,
        group="billing",
        request_id="R1",
        retry_times=2,
        keys="k1",
    )
    assert (after.request_id, after.is_success, after.context_code, after.cost_ms) == ("R1", False, 4, 7)
    assert (end.transaction_id, end.transaction_state, end.is_from_check) == ("T1", "COMMIT_MESSAGE", True)


def test_records_of_older_clients_lack_what_came_later() -> None:
    (pub,) = read_trace(line("Pub", "1", "r", "g", "t", "ID1", "a", "k", "h:1", "5", "3", "0", "true"))
    assert (pub.is_success, pub.offset_message_id) == (True, None)
    (after,) = read_trace(line("SubAfter", "R1", "ID1", "7", "true", "k1"))
    assert (after.is_success, after.timestamp_ms) == (True, None)


def test_what_is_no_record_hides_no_other() -> None:
    broken = line("Pub", "yesterday", "r", "g", "t", "ID1") + line("Unknown", "x") + b"\xff\x02" + line("Pub") + b"\x02"
    assert [record.message_id for record in read_trace(broken + BEFORE)] == ["ID1"]
    assert read_trace(b"") == []
    assert len(read_trace(BEFORE * (RECORDS_MAX + 5))) == RECORDS_MAX


def test_records_are_written_as_they_are_read() -> None:
    data = PUB + BEFORE + AFTER + END
    assert write_trace(read_trace(data)) == data


def test_what_a_record_lacks_is_written_as_javas_null_and_no_text_ends_its_field() -> None:
    record = TraceRecord(kind="SubBefore", message_id="ID1", request_id="R1", retry_times=0, keys="a\x01b\x02c")
    assert write_trace([record]) == line("SubBefore", "null", "null", "null", "R1", "ID1", "0", "a b c")
    pub = TraceRecord(kind="Pub", message_id="ID1", is_success=False, keys="")
    assert write_trace([pub]).rstrip(b"\x02").split(b"\x01")[5:9] == [b"ID1", b"null", b"null", b"null"]
    assert write_trace([pub]).endswith(b"\x01false\x02")
