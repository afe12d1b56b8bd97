"""The YAML file: what it may say, and errors that name line and key."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqadmin.configuration import document
from mqadmin.configuration.document import DocumentError, Entry, read, write

FILE = b"""\
topics:
  orders:
    owner: shop
    runbook: https://wiki.example.org/orders
    read_queues: 8
    write_queues: 8
    perm: 6
  yes:
    description: |
      two
      lines
groups:
  billing:
    retry_times_max: 3
    consumption: false
"""


def test_a_file_is_read_with_its_lines() -> None:
    orders, yes, billing = read(FILE)
    assert (orders.kind, orders.name, orders.line) == ("topic", "orders", 2)
    assert orders.values == {
        "owner": "shop",
        "runbook": "https://wiki.example.org/orders",
        "read_queues": 8,
        "write_queues": 8,
        "perm": 6,
    }
    assert orders.lines["perm"] == 7
    assert (yes.name, yes.values) == ("yes", {"description": "two\nlines\n"})
    assert billing.values == {"retry_times_max": 3, "consumption": False}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"topics:\n  orders:\n    queues: 8\n", "line 3: 'queues' is unknown for a topic"),
        (b"topic:\n  orders: {}\n", "line 1: 'topic' is unknown here; there are: topics, groups"),
        (b"topics:\n  orders:\n    owner: 7\n", "line 3: 'owner' must be a text"),
        (b"topics:\n  orders:\n    read_queues: eight\n", "line 3: 'read_queues' must be a whole number"),
        (b"topics:\n  orders:\n    read_queues: 8\n", "line 3: topic orders says 'read_queues', so it must say"),
        (b"groups:\n  g:\n    consumption: 1\n", "line 3: 'consumption' must be true or false"),
        (b"groups:\n  g:\n    retry_times_max: [1]\n", "line 3: 'retry_times_max' must be a whole number"),
        (b"groups:\n  g: 7\n", "line 2: group g must hold keys"),
        (b"groups:\n- g\n", "line 2: groups must hold keys"),
        (b"groups:\n  g: {}\n  g: {}\n", "line 3: 'g' stands on line 2 already"),
        (b"groups:\n  g: {owner: a, owner: b}\n", "line 2: 'owner' stands on line 2 already"),
        (b"groups:\n  [g]: {}\n", "line 2: a key of groups must be a plain word"),
        (b"groups: &all\n  g: {}\ntopics: *all\n", "line 1: anchors, aliases and tags"),
        (b"groups: !!python/object:os.system {}\n", "line 1: anchors, aliases and tags"),
        (b"groups:\n\t g: {}\n", "line 2: "),
        (b"\xff\xfe", "the file is not UTF-8"),
        (b"groups: {}\n---\ngroups: {}\n", "line 2: "),
        (b"[" * document.FILE_BYTES_MAX, "line 1: nested too deeply"),
        (b"groups:\n" + b"".join(b" " * depth + b"a:\n" for depth in range(1, 1000)), "nested too deeply"),
        (b"groups:\n  g:\n    retry_times_max: " + b"9" * 5000, "line 3: 'retry_times_max' must be a whole number"),
        (b"#" * (document.FILE_BYTES_MAX + 1), "larger than"),
    ],
)
def test_what_it_must_not_say_is_refused_with_line_and_key(text: bytes, words: str) -> None:
    with pytest.raises(DocumentError) as raised:
        read(text)
    assert words in str(raised.value)


@pytest.mark.parametrize("text", [b"", b"# nothing\n", b"topics:\ngroups:\n", b"topics: {}\n"])
def test_an_empty_file_says_nothing(text: bytes) -> None:
    assert read(text) == []


NAMES = st.text("abcdefghijklmnopqrstuvwxyzABCXYZ0123456789_-%|", min_size=1, max_size=20)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@given(
    st.dictionaries(NAMES, st.fixed_dictionaries({}, optional={"owner": TEXTS, "description": TEXTS}), max_size=5),
    st.dictionaries(
        NAMES, st.fixed_dictionaries({}, optional={"retry_times_max": st.integers(0, 1000), "orderly": st.booleans()})
    ),
)
def test_what_is_written_is_read_again(topics: dict[str, dict[str, str]], groups: dict[str, dict[str, int]]) -> None:
    entries = [Entry("topic", name, 0, values, {}) for name, values in topics.items()]
    entries += [Entry("group", name, 0, values, {}) for name, values in groups.items()]
    found = read(write(entries).encode())
    assert [(one.kind, one.name, one.values) for one in found] == [(one.kind, one.name, one.values) for one in entries]


@given(st.binary(max_size=200))
def test_no_file_raises_anything_else(text: bytes) -> None:
    try:
        read(text)
    except DocumentError:
        pass
