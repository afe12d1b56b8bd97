from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remoting.wire import lenient_json
from remoting.wire.errors import BodyError

QUEUE = '{"brokerName":"b","queueId":0,"topic":"T"}'

FASTJSON = {
    "standard JSON": ('{"a":[1,2.5,"x",true,null]}', {"a": [1, 2.5, "x", True, None]}),
    "keys that are objects": ("{" + QUEUE + ":5}", {QUEUE: 5}),
    "two of them": ("{" + QUEUE + ":5," + QUEUE.replace("0", "1") + ":6}", {QUEUE: 5, QUEUE.replace("0", "1"): 6}),
    "objects as keys deep inside": ('{"t":[{' + QUEUE + ':{"x":1}}]}', {"t": [{QUEUE: {"x": 1}}]}),
    "blanks around keys": ("{ " + QUEUE + " : 5 , 7 : 8 }", {QUEUE: 5, "7": 8}),
    "integer keys": ('{0:"a",-1:"b"}', {"0": "a", "-1": "b"}),
    "names without quotes": ("{name:1,$ref2:2,_x:3}", {"name": 1, "$ref2": 2, "_x": 3}),
    "single quotes": (r"""{'a':'it\'s "so"'}""", {"a": 'it\'s "so"'}),
    "trailing commas": ('{"a":[1,2,],}', {"a": [1, 2]}),
    "bare control characters": ('{0:"a\x01b\tc"}', {"0": "a\x01b\tc"}),
    "what looks like a key inside a text": ('{0:"{{\\"a\\":1}:2,3:4}"}', {"0": '{{"a":1}:2,3:4}'}),
    "braces and quotes inside a key's text": ('{{"topic":"}{\\"x"}:1}', {'{"topic":"}{\\"x"}': 1}),
    "text beyond ASCII in a key": ('{{"topic":"订单"}:1}', {'{"topic":"订单"}': 1}),
    "a number beyond 2^53": ("{0:9007199254740993}", {"0": 9007199254740993}),
    "half a character": ('{0:"\\ud800"}', {"0": "?"}),
    "a whole character in two halves": ('{0:"\\ud83d\\udc18"}', {"0": "🐘"}),
    "a reference": ('{"a":{"x":1},"b":{"$ref":"$.a"}}', {"a": {"x": 1}, "b": {"x": 1}}),
    "a reference into a list": ('{"a":[{"x":1}],"b":{"$ref":"$.a[0]"}}', {"a": [{"x": 1}], "b": {"x": 1}}),
    "a reference to nowhere": ('{"b":{"$ref":"$.nowhere[3]"}}', {"b": None}),
    "a reference to where it stands": ('{"b":{"$ref":"@"}}', {"b": None}),
    "a reference to a scalar's inside": ('{"a":5,"b":{"$ref":"$.a.x"}}', {"a": 5, "b": None}),
    "a reference to everything": ('{"b":{"$ref":"$"}}', {"b": {"b": {"$ref": "$"}}}),
    "no reference": ('{"$ref":"$","x":1}', {"$ref": "$", "x": 1}),
}


@pytest.mark.parametrize(("text", "meaning"), FASTJSON.values(), ids=FASTJSON.keys())
def test_fastjsons_dialect_is_read(text: str, meaning: Any) -> None:
    assert lenient_json.loads(text.encode()) == meaning


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "{0:}",
        '{"a":"',
        "{'a",
        "{{a}:1}x",
        '{"a" 1}',
        "[" * 100_000,
        '{"a":' * 100_000,
        "{0:" + "9" * 5000 + "}",
    ],
    ids=lambda text: text[:10] or "nothing",
)
def test_text_beyond_the_dialect_is_refused(text: str) -> None:
    with pytest.raises(BodyError):
        lenient_json.loads(text.encode())


@given(st.binary(max_size=100))
def test_garbage_raises_nothing_but_body_error(data: bytes) -> None:
    try:
        lenient_json.loads(data)
    except BodyError:
        pass


@given(st.text(alphabet="{}[]:,\"'\\ a0$ref.", max_size=60))
def test_text_made_of_jsons_own_characters_raises_nothing_but_body_error(text: str) -> None:
    try:
        lenient_json.loads(text.encode())
    except BodyError:
        pass


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(json_values)
def test_standard_json_is_read_by_the_dialect_reader_as_well(value: Any) -> None:
    """Only with a key that no standard knows does the slow path run; it must not change the rest."""
    text = '{0:1,"value":' + json.dumps(value, ensure_ascii=False) + "}"
    assert lenient_json.loads(text.encode()) == {"0": 1, "value": value} or "$ref" in text


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), st.dictionaries(st.integers(), st.integers(0, 2**62))))
def test_tables_with_integer_keys_are_read_whatever_the_texts_say(table: dict[str, dict[int, int]]) -> None:
    rows = (
        f"{json.dumps(text, ensure_ascii=False)}:{{{','.join(f'{key}:{number}' for key, number in numbers.items())}}}"
        for text, numbers in table.items()
    )
    meaning = {text: {str(key): number for key, number in numbers.items()} for text, numbers in table.items()}
    assert lenient_json.loads(f'{{"offsetTable":{{{",".join(rows)}}}}}'.encode()) == {"offsetTable": meaning}


@pytest.mark.parametrize("unit", ['\\"', '"a', "{", "\\'", ",a", ',"a":1', " "], ids=repr)
@pytest.mark.parametrize(
    "start", ["{", *(pytest.param(one, marks=pytest.mark.sweep) for one in ('{{"', "{'", "{a:{"))], ids=repr
)
@pytest.mark.slow
def test_hostile_text_is_refused_in_time_that_grows_with_its_length_alone(start: str, unit: str) -> None:
    # Time that grows with the square of it would be minutes here: the suite's limit for one test ends that.
    with pytest.raises(BodyError):
        lenient_json.loads((start + unit * (1_000_000 // len(unit))).encode())


def test_references_cannot_multiply_a_document() -> None:
    bomb = b'{"x":[' + b"1," * 99_999 + b'1],"y":[' + b'{"$ref":"$.x"},' * 99_999 + b"1]}"
    with pytest.raises(BodyError, match="references add more than"):
        lenient_json.loads(bomb)


def test_maps_keyed_by_objects_are_written_in_fastjsons_own_form() -> None:
    written = lenient_json.dumps_object_keyed(
        [({"brokerName": "b", "queueId": 0, "topic": "T"}, 5), ({"a": 1}, {"b": 2})]
    )
    assert written == b'{{"brokerName":"b","queueId":0,"topic":"T"}:5,{"a":1}:{"b":2}}'
    assert lenient_json.dumps_object_keyed([]) == b"{}"


def test_dumps_writes_no_blanks() -> None:
    assert lenient_json.dumps({"a": [1, 2], "b": "x y"}) == b'{"a":[1,2],"b":"x y"}'


def test_a_key_object_is_read_and_anything_else_refused() -> None:
    assert lenient_json.key_object(QUEUE) == {"brokerName": "b", "queueId": 0, "topic": "T"}
    for key in ("5", "name", "[1]", ""):
        with pytest.raises(BodyError, match="is not an object"):
            lenient_json.key_object(key)
