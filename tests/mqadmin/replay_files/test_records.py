"""Bytes cut into records, wherever they are cut into chunks, and never more of them in memory than one."""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Callable, Iterable, Iterator

import pytest

from mqadmin.replay_files import records
from mqadmin.replay_files.cells import WrongRow, cells_of, guard, unguard
from mqadmin.replay_files.records import Record

TEXT = b'a,b\r\n1,"x\r\ny ""q"" z"\n\n2,end'


def pieces(content: bytes, size: int) -> Iterator[bytes]:
    yield from (content[first : first + size] for first in range(0, len(content), size))


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_rows_are_the_same_wherever_the_file_is_cut(size: int) -> None:
    assert list(records.rows(pieces(TEXT, size))) == [
        Record(1, 1, b"a,b"),
        Record(2, 3, b'1,"x\r\ny ""q"" z"'),
        Record(5, 5, b"2,end"),
    ]


@pytest.mark.parametrize("size", [1, 4, 100])
def test_lines_are_the_same_wherever_the_file_is_cut(size: int) -> None:
    assert list(records.lines(pieces(b"{1}\r\n\n \n{2}", size))) == [Record(1, 1, b"{1}"), Record(4, 4, b"{2}")]


@pytest.mark.parametrize("cut", [records.lines, records.rows])
def test_a_line_that_is_too_long_is_named_and_not_kept(cut: Callable[[Iterable[bytes], int], Iterator[Record]]) -> None:
    def endless() -> Iterator[bytes]:
        yield b"first\n"
        for _ in range(200):
            yield b"x" * 1_000_000
        yield b"\nlast\n"

    found = list(cut(endless(), 100))
    assert found == [Record(1, 1, b"first"), Record(2, 2, None), Record(3, 3, b"last")]


def test_a_quotation_mark_that_is_not_closed_takes_no_more_than_a_row_may_have() -> None:
    content = b'1,"open\n' + b"2,x\n" * 5 + b"3,y\n"
    assert list(records.rows([content], 20)) == [
        Record(1, 5, None, is_open=True),
        Record(6, 6, b"2,x"),
        Record(7, 7, b"3,y"),
    ]
    assert list(records.rows([content])) == [Record(1, 7, None, is_open=True)]


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@x", "\tx", "\rx", "\nx", "＝1", "'", "'=1", "''x", "'x", "x", ""]
)
def test_what_guards_a_cell_is_taken_away_again(text: str) -> None:
    assert unguard(guard(text)) == text
    assert not guard(text).startswith(("=", "+", "-", "@", "\t", "\r", "\n", "＝"))


def test_a_cell_that_people_typed_with_an_apostrophe_stays() -> None:
    assert unguard("'s Gravenhage") == "'s Gravenhage"


def test_cells_are_read_as_they_were_written() -> None:
    chance = random.Random(7)
    for _ in range(300):
        cells = ["".join(chance.choices("a,\"'=;\n\r\t é", k=chance.randrange(6))) for _ in range(4)]
        text = io.StringIO()
        csv.writer(text).writerow([guard(one) for one in cells])
        assert cells_of(text.getvalue().removesuffix("\r\n"), ",", 10) == cells


@pytest.mark.parametrize("text", ['a"b,c', '"a"b,c', '"a', "a,b,c,d,e"])
def test_what_is_no_row_is_refused(text: str) -> None:
    with pytest.raises(WrongRow):
        cells_of(text, ",", 4)


def test_a_cell_of_megabytes_is_read() -> None:
    body = 'x"' * 2_000_000
    assert cells_of(f'1,"{body.replace(chr(34), chr(34) * 2)}",2', ",", 10) == ["1", body, "2"]
