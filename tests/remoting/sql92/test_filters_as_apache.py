"""The same expressions and messages through Apache's filter classes and through ours: the same outcome, each time.

Ours are the interpreter, and the generated function wherever there is one.
"""

from __future__ import annotations

import itertools
import json
import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from remoting.sql92.code_generator import generated
from remoting.sql92.errors import FilterError, Incomparable
from remoting.sql92.interpreter import evaluate, interpreted
from remoting.sql92.parser import parse
from remoting.sql92.tree import Node, Not
from remoting.wire.properties import encode_properties
from remoting.wire.property_lookup import TEXT_START
from tests.support.java import APACHE_JARS, JAVA_TESTS, java_command, require_apache

pytestmark = pytest.mark.java

Message = dict[str, str]

SEED = 20_924
RANDOM_EXPRESSIONS = 4_000
RANDOM_TEXTS = 4_000

# What a property can hold that reads as a number, nearly, or not at all. An empty value is none on both sides.
TEXTS = [
    "0", "1", "-1", "+1", "5", "05", "10", "5.0", "5.", ".5", "-0.0", "0.0", "1e3", "1E+3", "1e", "5L", "5d", "5.5F",
    " 5", "5 ", " 5.5 ", "1_0", " ", "-", "+", "--1", "NaN", "-NaN", "NaNd", "Infinity", "+Infinity", "-Infinity",
    "infinity", "0x10", "0x1.8p1", "0X.8P-1d", "0x1.p1", "0x.p1", "0x1p99999", "-0x1p99999", "1e400", "-1e400",
    "1e-400",
    "2147483647", "2147483648", "-2147483648", "-2147483649", "9223372036854775807", "9223372036854775808",
    "-9223372036854775808", "-9223372036854775809", "9007199254740993", "00000000000000000000000000005",
    "\u0665", "\uff15", "5\u0665", "\U0001d7d3", "\u00a05", "\u00b2", "true", "TRUE", "tRuE", "false", "FALSE",
    "yes", "null",
    "it's", "a''b", "Tokyo", "tokyo", "\u6771\u4eac", "\U0001f600", "a\nb", "d", "5f\n", "\u20035",
]  # fmt: skip

# Each stands for a rule, or for a place where a reader may think otherwise than Apache's.
EXPRESSIONS = [
    "a = 5", "5 = a", "a <> 5", "5 <> a", "a = '5'", "'5' = a", "a <> '5'", "a = b", "a <> b", "a < b", "a >= b",
    "a = a", "a > a", "a = 5L", "a = 2147483648", "a = 2147483647", "a > 2147483648", "a = -2147483648", "a = -5",
    "a > -5", "a = - -5", "a = +5", "a = -+5", "a = +-5", "+a = 5", "-a = 5", "-a IS NULL", "-a > 5", "-'x' IS NULL",
    "-TRUE IS NULL", "-NULL IS NULL", "-(a = 5) IS NULL", "-5", "5", "'x'", "a", "(a)", "((a))", "NOT a", "NOT NOT a",
    "a AND b", "a OR b", "a AND TRUE", "a OR TRUE", "TRUE", "FALSE", "NULL", "+TRUE", "NOT TRUE", "NOT NULL",
    "NULL AND FALSE", "NULL OR TRUE", "TRUE AND NULL", "FALSE OR NULL", "TRUE = TRUE", "TRUE = FALSE",
    "TRUE <> FALSE",
    "TRUE = 5", "5 = TRUE", "TRUE = 'x'", "'x' = TRUE", "'true' = TRUE", "'TRUE' = TRUE", "TRUE = a", "a = TRUE",
    "a = FALSE", "a <> TRUE", "(a = 5) = TRUE", "(a = 5) = 'true'", "'true' = (a = 5)", "(a = 5) = 5", "5 = (a = 5)",
    "(a = 5) = (b = 5)", "(a = 5) = b", "b = (a = 5)", "(a = 5) = 5.5", "a = NULL", "NULL = a", "a <> NULL",
    "a IS NULL", "a IS NOT NULL", "NOT a IS NULL", "NULL IS NULL", "5 IS NULL", "'x' IS NOT NULL", "TRUE IS NULL",
    "(a = 5) IS NULL", "a = 5 IS NULL", "a IS NULL IS NULL", "a IS NULL = TRUE", "a IS", "a IS NOT", "a IS 5",
    "a IS NOT 5",
    "a < 5", "a <= 5", "a > 5", "a >= 5", "5 < a", "5 <= a", "5 > a", "5 >= a", "a > 5.0", "a > 5.5", "5.5 > a",
    "a > 1e3", "a > 1.e3", "a > .5", "a >= .5e1", "a = 0.0", "a = 0.00e5", "a = 1e-999", "a = 1e999", "a > 00.5",
    "a = 007", "a = 0", "a = 0L", "a = 00", "a > 1e", "a > 1.5L", "a > 1.5d", "a > 5l", "a > 9223372036854775807",
    "a > 9223372036854775808", "a > -9223372036854775808", "a >= 9223372036854775807L", "a > 99999999999999999999999",
    "a = 9007199254740993", "a = 9007199254740992.0", "5 = 5", "5 = 5.0", "5 = 6", "5 < 6", "6 < 5.5", "5 = '5'",
    "'5' = 5", "'x' = 5", "'5' = 5.0", "5L = 5", "3000000000 = 3000000000.0", "3000000000 > 5", "-3000000000 < -5",
    "9007199254740993 = 9007199254740992.0", "'5' = 3000000000", "1 > 'x'", "a > 'x'", "'x' < a", "'5' > 5",
    "a > TRUE", "a < NULL", "(a = 5) > 5", "NOT a > 5", "NOT (a > 5)", "NOT a = 5", "NOT a IN ('5')",
    "NOT (a IN ('5'))",
    "a > 5 > 3", "a = 5 = TRUE", "a = 5 <> FALSE", "a = 5 = 5", "a < 5 = TRUE",
    "a BETWEEN 1 AND 10", "a NOT BETWEEN 1 AND 10", "a BETWEEN 10 AND 1", "a NOT BETWEEN 10 AND 1",
    "a BETWEEN 5 AND 5",
    "a BETWEEN -5 AND 5", "a BETWEEN 5 AND -5", "a BETWEEN 1.5 AND 5", "a BETWEEN 5 AND 1.5", "a BETWEEN b AND 10",
    "a BETWEEN b AND c", "a BETWEEN 'a' AND 'b'", "a BETWEEN NULL AND 5", "a BETWEEN 1 AND NULL",
    "5 BETWEEN 1 AND 10",
    "5 BETWEEN a AND b", "'x' BETWEEN 1 AND 10", "a BETWEEN 1 AND 10 AND b = 5", "a BETWEEN 1", "a BETWEEN 1 OR 5",
    "a BETWEEN 1 AND (5)", "a BETWEEN (a = 5) AND 10", "a BETWEEN 1 AND 3000000000", "a BETWEEN -TRUE AND 5",
    "a IN ('5')", "a IN ('5', 'Tokyo')", "a NOT IN ('5', 'Tokyo')", "a IN ('1','2','3','4','5','6')", "a IN ()",
    "a IN (5)",
    "a IN ('5',)", "a IN '5'", "a IN ('5'", "'a' IN ('a')", "5 IN ('5')", "(a) IN ('5')", "+a IN ('5')",
    "-a IN ('5')",
    "(a = 5) IN ('x')", "a NOT IN ('')", "a IN ('it''s')", "a IN ('a''''b')", "a IN (a)", "a IN ('5', TRUE)",
    "a CONTAINS 'o'", "a NOT CONTAINS 'o'", "a CONTAINS ''", "a NOT CONTAINS ''", "a STARTSWITH 'To'",
    "a NOT STARTSWITH 'To'", "a ENDSWITH 'yo'", "a NOT ENDSWITH 'yo'", "a ENDSWITH ''", "a NOT STARTSWITH ''",
    "a CONTAINS b", "a CONTAINS 5", "a CONTAINS TRUE", "a CONTAINS", "5 CONTAINS '5'", "'abc' CONTAINS 'b'",
    "'abc' NOT CONTAINS 'b'", "TRUE CONTAINS 'a'", "NULL CONTAINS 'a'", "(a = 5) NOT CONTAINS 'a'", "-a CONTAINS 'a'",
    "a CONTAINS 'T' CONTAINS 'x'", "a CONTAINS 'T' = TRUE", "a STARTSWITH '''", "a CONTAINS ''''",
    "a CONTAINS '\u4eac'",
    "a NOT b", "a NOT 5", "a NOT", "NOT", "a NOT NOT IN ('5')", "a NOT IS NULL", "a LIKE 'x'", "a = 'x' ESCAPE 'y'",
    "a = 'x", "a = x'", "a = 'it''s'", "a = 'it'''", "a = ''''", "a = 'a''b'", "a = ''", "a = \"x\"", "a = 'a\nb'",
    "a = '\u6771\u4eac'", "a = '\U0001f600'", "\u6771 = 5", "a = \u4eac",
    "", " ", "\n", "()", "(", ")", "(a = 5", "a = 5)", "a = 5))", "((a = 5)", "a = (5)", "(a) = (5)", "a = ((5))",
    "a = 5 b", "a = 5 'x'", "a = 5 5", "a = 5 ^", "a = 5 b ^", "a = 5;", "a = 5 ;;", "a = 5, b = 5", "a = 5 (b = 5)",
    "a = 5 NOT", "a = 5 AND", "a = 5 OR", "AND a = 5", "a = 5 AND AND b = 5", "a = 5 OR b = 5 AND c = 5",
    "(a = 5 OR b = 5) AND c = 5", "a = 5 AND b = 5 OR c = 5", "NOT (a = 5 AND b = 5)", "NOT a = 5 AND b = 5",
    "a = 5 && b = 5", "a = 5 || b = 5", "a == 5", "a != 5", "a => 5", "a =< 5", "a <> > 5", "a < > 5", "a < = 5",
    "a = 5 + 1", "a + 1 = 5", "a - 1 = 5", "a * 2 = 10", "a / 2 = 10", "a % 2 = 0", "a-1 = 5", "a -5", "a = 5-1",
    "A = 5", "a = 5 and b = 5", "a = 5 oR b = 5", "nOt a", "a Is NuLl", "a between 1 and 10", "a in ('5')",
    "a contains 'o'", "a startswith 'T'", "a endsWith 'o'", "true", "False", "null is null",
    "a\t=\n5\f\r", "a = 5 -- note", "a = 5 -- note\n AND b = 5", "a = --5", "a = --5\n6", "-- note\na = 5", "-- note",
    "/* note */ a = 5", "a /* x */ = /* y */ 5", "a = /* * ** x */ 5", "a = 5 /* x", "a = 5 /", "/**/a = 5",
    "/*/ a = 5",
    "/***/a = 5", "a = 5 /* x */ b */", "a=5AND b=5", "a=5and b=5", "a = 5and", "a=5.and b=5", "a>.5and b=5",
    "a>5eand",
    "$a = 5", "_a = 5", "a_$1 = 5", "1a = 5", "a.b = 5", "a:b = 5", "`a` = 5", "[a] = 5", "@a = 5", "#", "?", "a = ?",
    "a > -(b > 5)", "-(b > 5) > a",
    "a\u00a0= 5", "a = 5\x00", "\ufeffa = 5", "TAGS = 'x' AND KEYS IS NULL", "a = 5 OR a > 5", "a > 5 OR a = 'Tokyo'",
    "a = 'Tokyo' OR a > 5", "a = 'x' AND a > 5", "a > 5 AND FALSE", "FALSE AND a > 5", "TRUE OR a > 5",
    "a > 5 OR TRUE",
    "\u017f = 5", "a I\u0053 NULL", "a \u0130S NULL", "a li\u212ae 'x'", "NOT(a = 5)", "a IN('5')AND b = 5", "+",
    "-", "+ +", "- -5 = 5",
]  # fmt: skip


def test_every_rule_has_apaches_outcome(tmp_path: Path) -> None:
    texts: list[Message] = [{}] + [{"a": text} for text in TEXTS]
    beside = [{"a": a, "b": b} for a, b in itertools.product(("5", "Tokyo", "NaN", "-0.0"), TEXTS)]
    messages = texts + beside + [{"b": "5"}, {"b": "true", "c": "5"}, {"a": "5", "b": "4", "c": "6"}]

    _compare(tmp_path, [(expression, messages) for expression in EXPRESSIONS])


def test_random_expressions_have_apaches_outcome(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    cases = [(_expression(chance, 4), _messages(chance)) for _ in range(RANDOM_EXPRESSIONS)]

    _compare(tmp_path, cases)


def test_random_words_are_refused_where_apache_refuses_them(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    cases = [(_words(chance), _messages(chance)) for _ in range(RANDOM_TEXTS)]

    _compare(tmp_path, cases)


def _compare(folder: Path, cases: list[tuple[str, list[Message]]]) -> None:
    apaches = _apaches_outcomes(folder, cases)
    ours = [_our_outcome(expression, messages) for expression, messages in cases]
    different = [
        f"{case[0]!r}: Apache {apache}, ours {own}{_first_difference(case[1], apache, own)}"
        for case, apache, own in zip(cases, apaches, ours, strict=True)
        if apache != own
    ]
    assert not different, f"{len(different)} of {len(cases)}:\n" + "\n".join(different[:40])


def _first_difference(messages: list[Message], apache: str, own: str) -> str:
    differing = [message for message, left, right in zip(messages, apache, own, strict=False) if left != right]
    return f" at {differing[0]}" if differing else ""


def _apaches_outcomes(folder: Path, cases: list[tuple[str, list[Message]]]) -> list[str]:
    require_apache()
    lines = [json.dumps({"expression": expression, "messages": messages}) for expression, messages in cases]
    command = java_command([APACHE_JARS], str(JAVA_TESTS / "filters/Filters.java"), folder)
    done = subprocess.run(command, input="\n".join(lines).encode(), capture_output=True, timeout=120, check=False)
    answers = done.stdout.decode().splitlines()
    assert len(answers) == len(cases), done.stderr.decode()
    return answers


def _our_outcome(expression: str, messages: list[Message]) -> str:
    try:
        tree = parse(expression)
    except FilterError:
        return "X"
    ways = [
        (matches, letter)
        for node, letter in ((tree, "T"), (Not(tree), "F"))
        for matches in (interpreted(node), generated(node))
        if matches is not None
    ]
    return "".join(_letter(tree, ways, message) for message in messages)


def _letter(tree: Node, ways: list[tuple[Callable[[bytes], bool], str]], message: Message) -> str:
    """Of true, false, NULL; E where the evaluation fails. Only a true one lets the message through, on each way."""
    try:
        letter = {True: "T", False: "F", None: "N"}[evaluate(tree, {name: one for name, one in message.items() if one})]
    except Incomparable:
        letter = "E"
    text = TEXT_START + encode_properties(message).encode()
    assert all(matches(text) is (letter == let_through) for matches, let_through in ways)
    return letter


# chance

_NAMES = ["a", "b", "c"]
_NUMBERS = ["0", "1", "5", "10", "5L", "3000000000", "5.5", ".5", "1e3", "2147483648"]
_STRINGS = ["'5'", "'Tokyo'", "'x'", "''", "'it''s'", "'true'", "'10'"]
_WORDS = [
    *_NAMES, *_NUMBERS, *_STRINGS, "AND", "OR", "NOT", "not", "IS", "NULL", "TRUE", "FALSE", "BETWEEN", "IN",
    "CONTAINS",
    "STARTSWITH", "ENDSWITH", "=", "<>", "<", "<=", ">", ">=", "(", ")", ",", "+", "-", "-- x\n", "/* x */", "^",
]  # fmt: skip


def _messages(chance: random.Random) -> list[Message]:
    return [
        {name: chance.choice(TEXTS[:20] + ["Tokyo", "true"] * 4) for name in _NAMES if chance.random() < 0.75}
        for _ in range(12)
    ]


def _expression(chance: random.Random, depth: int) -> str:
    if depth == 0:
        return _leaf(chance)
    match chance.randrange(6):
        case 0 | 1:
            sign = chance.choice([" AND ", " OR "])
            return sign.join(_expression(chance, depth - 1) for _ in range(chance.randint(2, 3)))
        case 2:
            return f"NOT ({_expression(chance, depth - 1)})"
        case 3:
            return f"({_expression(chance, depth - 1)})"
        case 4:
            sign = chance.choice(["=", "<>"])
            return f"({_expression(chance, depth - 1)}) {sign} {chance.choice(['TRUE', 'FALSE', *_NAMES])}"
        case _:
            return _leaf(chance)


def _leaf(chance: random.Random) -> str:
    name, other = chance.choice(_NAMES), chance.choice(_NAMES)
    number, string = chance.choice(["", "-", "+"]) + chance.choice(_NUMBERS), chance.choice(_STRINGS)
    order, equality, not_ = (
        chance.choice(["<", "<=", ">", ">="]),
        chance.choice(["=", "<>"]),
        chance.choice(["", "NOT "]),
    )
    return chance.choice(
        [
            f"{name} {order} {number}", f"{number} {order} {name}", f"{name} {order} {other}",
            f"{name} {equality} {other}",
            f"{name} {equality} {number}", f"{name} {equality} {string}", f"{string} {equality} {name}",
            f"{name} IS {not_}NULL", f"{name} {not_}IN ({string}, {chance.choice(_STRINGS)})",
            f"{name} {not_}BETWEEN 1 AND {chance.choice(_NUMBERS)}", f"{name} {not_}BETWEEN {number} AND {other}",
            f"{name} {not_}{chance.choice(['CONTAINS', 'STARTSWITH', 'ENDSWITH'])} {string}", f"{not_}{name}",
        ]
    )  # fmt: skip


def _words(chance: random.Random) -> str:
    return chance.choice([" ", "  ", "\n"]).join(chance.choice(_WORDS) for _ in range(chance.randint(1, 8)))
