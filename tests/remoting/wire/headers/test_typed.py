from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remoting.wire import headers
from remoting.wire.errors import HeaderError
from remoting.wire.headers.groups import UnregisterClientHeader
from remoting.wire.headers.offsets import QueueHeader, SearchOffsetHeader
from remoting.wire.headers.pull import PullMessageHeader
from remoting.wire.headers.send import SendMessageHeader, SendMessageHeaderV2
from remoting.wire.headers.typed import Header, read_header, write_header


def all_headers() -> list[type[Header]]:
    for module in pkgutil.iter_modules(headers.__path__):
        importlib.import_module(f"{headers.__name__}.{module.name}")
    found, waiting = [], [Header]
    while waiting:
        children = waiting.pop().__subclasses__()
        found += [child for child in children if child.__module__.startswith(headers.__name__)]
        waiting += children
    return sorted(found, key=lambda header: header.__name__)


HEADERS = all_headers()
EVERY_HEADER = pytest.mark.parametrize("header_type", HEADERS, ids=lambda header: header.__name__)

texts = st.text(st.characters(codec="utf-8"), max_size=20)


def values_of(field: msgspec.structs.FieldInfo) -> st.SearchStrategy[Any]:
    """Any value that a field may hold."""
    info = msgspec.inspect.type_info(field.type)
    kinds = info.types if isinstance(info, msgspec.inspect.UnionType) else (info,)
    strategies: list[st.SearchStrategy[Any]] = []
    for kind in kinds:
        match kind:
            case msgspec.inspect.IntType():
                assert kind.ge is not None, f"{field.name} has no limit: declare it Int32 or Int64"
                assert kind.le is not None
                strategies.append(st.integers(kind.ge, kind.le))
            case msgspec.inspect.BoolType():
                strategies.append(st.booleans())
            case msgspec.inspect.StrType():
                strategies.append(texts)
            case msgspec.inspect.NoneType():
                strategies.append(st.none())
            case _:
                raise AssertionError(f"{field.name}: a header holds no {kind}")
    return st.one_of(strategies)


@cache
def fields_of(header_type: type[Header]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({field.name: values_of(field) for field in msgspec.structs.fields(header_type)})


# There are dozens of headers: together they see as many examples as other properties do.
@EVERY_HEADER
@settings(max_examples=settings().max_examples // 3)
@given(data=st.data())
def test_a_header_comes_back_as_it_was(header_type: type[Header], data: st.DataObject) -> None:
    header = header_type(**data.draw(fields_of(header_type)))
    written = write_header(header)
    assert all(isinstance(value, str) for value in written.values())
    assert read_header(header_type, written) == header


@EVERY_HEADER
def test_a_missing_required_field_is_named(header_type: type[Header]) -> None:
    required = [field for field in msgspec.structs.fields(header_type) if field.required]
    for missing in required:
        fields = {field.encode_name: "1" for field in required if field is not missing}
        with pytest.raises(HeaderError, match=f"{header_type.__name__}.*{missing.encode_name}"):
            read_header(header_type, fields)


@EVERY_HEADER
def test_unknown_fields_are_ignored(header_type: type[Header]) -> None:
    required = {field.encode_name: "1" for field in msgspec.structs.fields(header_type) if field.required}
    assert read_header(header_type, {**required, "ReqT": "0", "Signature": "x"}) == read_header(header_type, required)


@pytest.mark.parametrize(
    ("text", "value"),
    [("5", 5), ("-5", -5), ("+5", 5), ("0", 0), ("2147483647", 2147483647), ("-2147483648", -2147483648)],
)
def test_integers_are_read_as_java_reads_them(text: str, value: int) -> None:
    assert read_header(QueueHeader, {"topic": "T", "queueId": text}).queue_id == value


@pytest.mark.parametrize("text", ["x", "5x", "0x10", "1_0", "2147483648", "9" * 5000, "٣", "--5", "+-5", "1.5"])
def test_garbage_integers_are_refused_with_the_field_named(text: str) -> None:
    with pytest.raises(HeaderError, match=r"QueueHeader.*queueId"):
        read_header(QueueHeader, {"topic": "T", "queueId": text})


@pytest.mark.parametrize("text", [str(2**63), str(2**64), str(-(2**63) - 1)])
def test_a_long_beyond_64_bits_is_refused(text: str) -> None:
    with pytest.raises(HeaderError, match=r"SearchOffsetHeader.*timestamp"):
        read_header(SearchOffsetHeader, {"topic": "T", "queueId": "0", "timestamp": text})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("TRUE", True),
        ("false", False),
        ("0", False),
        pytest.param("1", False, id="librocketmq's batch flag, which Apache does not take for one"),
        ("yes", False),
        ("1x", False),
        ("", False),
    ],
)
def test_booleans_are_true_only_for_the_word(text: str, value: bool) -> None:
    assert bool(read_header(QueueHeader, {"topic": "T", "queueId": "0", "committed": text}).committed) is value


def test_a_blank_number_counts_as_absent() -> None:
    fields = write_header(
        PullMessageHeader(
            consumer_group="g",
            topic="T",
            queue_id=0,
            queue_offset=0,
            max_msg_nums=32,
            sys_flag=0,
            commit_offset=0,
            suspend_timeout_millis=0,
            sub_version=0,
        )
    )
    assert read_header(PullMessageHeader, {**fields, "maxMsgBytes": ""}).max_msg_bytes is None
    with pytest.raises(HeaderError, match="queueId"):
        read_header(PullMessageHeader, {**fields, "queueId": " "})


def test_the_second_send_header_has_the_same_fields_under_letters() -> None:
    first = {field.name: field.type for field in msgspec.structs.fields(SendMessageHeader)}
    second = {field.name: field.type for field in msgspec.structs.fields(SendMessageHeaderV2)}
    assert first == second
    letters = [field.encode_name for field in msgspec.structs.fields(SendMessageHeaderV2)]
    assert letters == list("abcdefghijklmn")


def test_unregister_header_spells_client_id_as_java_does() -> None:
    header = UnregisterClientHeader(client_id="c", consumer_group="g")
    assert write_header(header) == {"clientID": "c", "consumerGroup": "g"}
