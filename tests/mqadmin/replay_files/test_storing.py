"""Files read back: as exported, changed outside, wrong in parts, and hostile."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mqadmin.clusters.models import Cluster
from mqadmin.deadletters.models import DeadLetter, KeptMessage
from mqadmin.replay_files import limits
from mqadmin.replay_files.models import FileMessage, ReplayFile
from mqadmin.replay_files.selectors import GroupPart, parts
from mqadmin.replay_files.storing import FileRefused, FileTooLarge, store
from tests.mqadmin.replay_files.conftest import Store, problems

pytestmark = pytest.mark.django_db

Exported = Callable[[str], bytes]


def document(**fields: Any) -> dict[str, Any]:
    return {"group": "billing", "body": "x", "origin_topic": "orders", **fields}


def lines_of(content: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in content.splitlines()]


@pytest.mark.parametrize("format", ["jsonl", "csv"])
def test_an_export_is_read_back_as_what_the_index_has(exported: Exported, take: Store, format: str) -> None:
    file = take(exported(format))
    assert problems(file) == {}
    rows = FileMessage.objects.filter(file=file).order_by("line")
    kept = {row.pk: bytes(row.body or b"") for row in KeptMessage.objects.all()}
    assert [(row.dead_letter_id, row.is_changed, bytes(row.body or b"")) for row in rows] == [
        (row.pk, False, kept[row.pk]) for row in DeadLetter.objects.order_by("-dead_at", "-pk")
    ]
    assert parts(file) == [GroupPart("billing", 3, 0, 0)]


def test_cells_that_look_like_formulas_come_back_as_they_were(exported: Exported, take: Store) -> None:
    KeptMessage.objects.filter(dead_letter__message_id="UNIQ1").update(body=b"=cmd|' /C calc'!A0")
    content = exported("csv")
    assert b"'=cmd" in content
    assert problems(take(content)) == {}
    assert not FileMessage.objects.filter(is_changed=True).exists()


def test_a_body_that_was_changed_outside_is_another_message(exported: Exported, take: Store) -> None:
    changed = lines_of(exported("jsonl"))
    changed[2]["body"] = '{"id": 1}'
    file = take(changed)
    assert problems(file) == {}
    assert [row.message_id for row in FileMessage.objects.filter(is_changed=True)] == ["UNIQ0"]


def test_what_the_system_wrote_may_not_be_changed(exported: Exported, take: Store) -> None:
    first, second, third = lines_of(exported("jsonl"))
    first["properties"]["RETRY_TOPIC"] = "payments"
    second["origin_topic"] = "payments"
    third["body"] = "{"
    assert problems(take([first, second, third])) == {
        1: "RETRY_TOPIC is a property of the system, and was changed",
        2: "its origin_topic is not that of the dead letter, which is orders",
        3: "its body was JSON, and is none any more",
    }


def test_a_body_that_is_not_in_the_file_is_that_of_the_index(exported: Exported, take: Store) -> None:
    known, changed, other = ({**one, "body": "", "body_encoding": "absent"} for one in lines_of(exported("jsonl")))
    changed["properties"] = {**changed["properties"], "colour": "red"}
    other["message_id"] = "other"
    file = take([known, changed, other])
    assert problems(file) == {
        2: "its properties were changed, and its body is not in the file",
        3: "its body is not in the file, and the index has no such dead letter",
    }
    assert FileMessage.objects.get(line=1).has_body is False


def test_what_the_index_does_not_know_counts_as_changed(take: Store) -> None:
    file = take([document(), document(properties={"RETRY_TOPIC": "refunds"}, origin_topic="")])
    rows = FileMessage.objects.filter(file=file).order_by("line")
    assert [(row.is_changed, row.origin_topic) for row in rows] == [(True, "orders"), (True, "refunds")]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"{", "it is not the JSON of a dead letter"),
        (b'{"group": "billing"}', "missing required field `body`"),
        (b'{"group": "bill ing", "body": ""}', "its group cannot be one"),
        (b'{"group": "billing", "body": 7}', "Expected `str`, got `int`"),
        (b'{"group": "billing", "body": "\xff"}', "codec can't decode"),
        (b'{"group": "billing", "body": "\\ud800"}', "it is not the JSON of a dead letter"),
        (b'{"group": "billing", "body": "x", "more": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "recursion"),
        (json.dumps(document(cluster="other")).encode(), "it is a dead letter of cluster other, and this is prod"),
        (json.dumps(document(body_encoding="masked")).encode(), "its body was hidden"),
        (json.dumps(document(body_encoding="gzip")).encode(), "its body_encoding is gzip"),
        (json.dumps(document(body="a===", body_encoding="base64")).encode(), "its body is not Base64"),
        (json.dumps(document(body="x" * (4 * 2**20 + 1))).encode(), "its body has 4194305 bytes"),
        (json.dumps(document(properties={"a\u0001": "b"})).encode(), "a character that no property can hold"),
        (json.dumps(document(properties={"a": "b" * 40_000})).encode(), "its properties have"),
        (json.dumps(document(properties={"TAGS": "paid"}, tag="sent")).encode(), "its tag or keys are not"),
        (json.dumps(document(origin_topic="or ders")).encode(), "its topic cannot be one"),
        (json.dumps(document(origin_topic="SCHEDULE_TOPIC_XXXX")).encode(), "nobody may send to topic"),
        (json.dumps(document(message_id="x" * 300)).encode(), "its message id is longer"),
    ],
)
def test_a_wrong_line_is_named_and_the_rest_goes_on(take: Store, line: bytes, words: str) -> None:
    good = json.dumps(document()).encode()
    file = take(b"\n".join([good, line, good]))
    assert (file.message_count, file.wrong_count) == (2, 1)
    ((number, problem),) = problems(file).items()
    assert number == 2
    assert words in problem


def test_the_same_dead_letter_twice_in_a_file_is_said(exported: Exported, take: Store) -> None:
    first, *_ = lines_of(exported("jsonl"))
    assert problems(take([first, document(), first])) == {3: "line 1 is the same dead letter"}


def test_rows_of_a_spreadsheet_are_read_and_what_it_damaged_is_said(take: Store) -> None:
    rows = ["group;body;note", "billing;ok;1", "billing", f"billing;{'x' * 32767};3", 'billing;"a"b;4']
    file = take("\ufeff".encode() + "\r\n".join(rows).encode())
    assert problems(file) == {
        3: "it has fewer cells than the first line has names",
        4: "a spreadsheet has cut its body after 32767 characters",
        5: "it is no row of CSV: a quotation mark is not where it may be",
    }


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "neither JSON Lines nor CSV"),
        (b"\n\n", "neither JSON Lines nor CSV"),
        (b"id,text\n1,2\n", "neither JSON Lines nor CSV"),
        (b"group,body\n", "no dead letter"),
        ("group,body\n".encode("utf-16"), "UTF-16"),
        (b"\x1f\x8b\x08", "compressed"),
        (b"PK\x03\x04", "spreadsheet"),
        (b' [{"group": "billing"}]', "JSON array"),
        (b"\x80\x81\x82" * 5000, "neither JSON Lines nor CSV"),
    ],
)
def test_what_is_no_file_of_dead_letters_is_refused_as_a_whole(take: Store, content: bytes, words: str) -> None:
    with pytest.raises(FileRefused, match=words):
        take(content)
    assert not ReplayFile.objects.exists()


def test_a_file_that_is_too_large_is_refused_and_leaves_nothing(prod: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    good = json.dumps(document()).encode() + b"\n"
    monkeypatch.setattr(limits, "CHUNK_LINES", 2)
    monkeypatch.setattr(limits, "LINES_MAX", 5)
    with pytest.raises(FileTooLarge, match="5 lines"):
        store(prod, "many", [good * 10], by="ann")
    monkeypatch.setattr(limits, "FILE_BYTES_MAX", 100 * 2**20)

    def two_gigabytes() -> Iterator[bytes]:
        yield good[:-2]
        for _ in range(2048):
            yield b"x" * 2**20

    with pytest.raises(FileTooLarge, match="100 MiB"):
        store(prod, "one line", two_gigabytes(), by="ann")
    assert not ReplayFile.objects.exists()
    assert not FileMessage.objects.exists()


def test_a_line_of_a_hundred_megabytes_costs_itself_alone(prod: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LINE_BYTES_MAX", 2**20)
    good = json.dumps(document()).encode() + b"\n"
    file, _ = store(prod, "long", [good, *[b"x" * 2**20] * 100, b"\n", good], by="ann")
    assert problems(file) == {2: "it is longer than 1 MiB"}
    assert file.byte_count == 100 * 2**20 + 1 + 2 * len(good)


def test_who_sends_the_same_file_again_gets_the_one_that_is_there(take: Store, prod: Cluster) -> None:
    first = take([document()])
    again, is_new = store(prod, "other name", [json.dumps(document()).encode()], by="bob")
    assert (again.pk, is_new) == (first.pk, False)
    assert ReplayFile.objects.count() == FileMessage.objects.count() == 1


def test_so_many_files_wait_at_most(take: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FILES_MAX", 1)
    take([document()])
    with pytest.raises(FileRefused, match="delete one first"):
        take([document(body="y")])


def test_a_reader_that_dies_leaves_nothing_that_is_shown(prod: Cluster) -> None:
    def breaks_off() -> Iterator[bytes]:
        yield json.dumps(document()).encode() * 1
        raise ConnectionError

    with pytest.raises(ConnectionError):
        store(prod, "half", breaks_off(), by="ann")
    assert not ReplayFile.objects.exists()
