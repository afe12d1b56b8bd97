"""What the docs promise is there, and what is there is in the docs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.core.management import get_commands

from broker.engine.broker import Broker
from broker.engine.config import BrokerConfig
from broker.engine.pipeline import fill_tables
from broker.engine.schedule.level_history import LevelHistory
from broker.engine.serving.request_table import RequestTable
from broker.engine.serving.requests import Processor, Processors
from broker.engine.settings import Settings
from remoting.complaints import ComplaintLog
from remoting.wire.codes import RequestCode
from tests.support.delay_levels import DEFAULT_LEVELS
from tests.support.stores import SMALL, ManualClock, open_store

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ARCHITECTURE = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
BEHAVIOUR = (ROOT / "docs" / "BEHAVIOUR.md").read_text(encoding="utf-8")
COMPATIBILITY = (ROOT / "docs" / "COMPATIBILITY.md").read_text(encoding="utf-8")


def variables_read() -> set[str]:
    sources = [path for room in ("mqadmin", "broker", "consumer") for path in (ROOT / room).rglob("*.py")]
    pattern = re.compile(
        r"""environ(?:\.get\(|\[|\.setdefault\()\s*["'](MQADMIN_\w+|DATABASE_URL|REDIS_URL|SPARK_MASTER)["']"""
    )
    return {name for path in sources for name in pattern.findall(path.read_text(encoding="utf-8"))}


def test_every_variable_that_is_read_is_in_the_readme_and_none_else() -> None:
    documented = set(re.findall(r"^\| `(\w+)` \|", README, re.MULTILINE))
    assert documented == variables_read()


def test_every_command_of_the_readme_exists() -> None:
    named = set(re.findall(r"`manage\.py (\w+)", README + ARCHITECTURE))
    assert named
    assert named <= set(get_commands())


def test_every_make_word_of_the_readme_exists() -> None:
    words = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"`?make (run|test|check|bench|\w+)`", README)) <= words


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_path_and_link_of_a_page_exists(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    rooms = "remoting|broker|consumer|mqadmin|tests|examples|templates|static|docs|bench"
    paths = set(re.findall(rf"`((?:{rooms})/[\w./-]*)`", text))
    assert [named for named in sorted(paths) if not (ROOT / named).exists()] == []
    links = re.findall(r"\]\(([^)#:]+)\)", text)
    assert [link for link in links if not (path.parent / link).exists()] == []


# Sent by the broker to its clients: nobody asks the broker these.
TO_CLIENTS = {
    RequestCode.CHECK_TRANSACTION_STATE,
    RequestCode.NOTIFY_CONSUMER_IDS_CHANGED,
    RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT,
    RequestCode.RESET_CONSUMER_CLIENT_OFFSET,
    RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT,
}
FIRST_PRIVATE_CODE = 29_001


def table_rows(columns: int) -> list[list[str]]:
    """The cells of every row of the compatibility page's tables with so many columns, headings left out."""
    lines = [line for line in COMPATIBILITY.splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [row for row in rows if len(row) == columns and row[0] not in ("code", "feature", "here", "client")]


def code_rows() -> dict[int, list[str]]:
    return {int(row[0]): row for row in table_rows(6)}


@pytest.fixture
def processors(tmp_path: Path) -> Processors:
    """What broker and name server answer, by request code."""
    config = BrokerConfig(store=tmp_path)
    levels = LevelHistory(config.config_dir, DEFAULT_LEVELS)
    store = open_store(tmp_path, SMALL, ManualClock())
    complaints = ComplaintLog()
    settings = Settings(config, complaints)
    broker = Broker(config=config, settings=settings, levels=levels, store=store, complaints=complaints)
    tables = (RequestTable("broker"), RequestTable("name server"))
    fill_tables(*tables, broker)
    store.close()
    return {**tables[0].processors, **tables[1].processors}


@pytest.fixture
def answered(processors: Processors) -> set[int]:
    """Every code of RocketMQ's that broker or name server answers."""
    return {code for code in processors if code < FIRST_PRIVATE_CODE or code > 30_000}


def test_the_compatibility_page_says_yes_to_the_codes_that_are_answered_and_to_no_other(answered: set[int]) -> None:
    done = {code for code, row in code_rows().items() if row[2] in ("yes", "differs")}
    assert sorted(answered - done) == []
    assert sorted(done - answered - TO_CLIENTS) == []


def test_the_compatibility_page_names_the_file_that_holds_each_code(processors: Processors, answered: set[int]) -> None:
    """Of a code that the broker sends, the file in which it does."""
    named = {code: _linked(row[3]) for code, row in code_rows().items() if row[3]}
    held = {code: _path_of(processors[code]) for code in answered}
    assert {code: path for code, path in named.items() if code not in TO_CLIENTS} == held
    assert [code for code in TO_CLIENTS if code.name not in (ROOT / named[code]).read_text(encoding="utf-8")] == []


def _path_of(processor: Processor) -> str:
    """The file that holds a processor's code."""
    owner = getattr(processor, "__self__", processor)
    return f"{type(owner).__module__.replace('.', '/')}.py"


def _linked(cell: str) -> str:
    """The path of `[word](../path)`."""
    return cell.partition("](../")[2].rstrip(")")


def test_the_compatibility_page_names_each_code_as_apache_does() -> None:
    codes = [row[0] for row in table_rows(6)]
    assert len(codes) == len(set(codes))
    named = {code: row[1] for code, row in code_rows().items()}
    assert {code.value: code.name for code in RequestCode if code < FIRST_PRIVATE_CODE}.items() <= named.items()


def test_every_claim_of_the_compatibility_page_has_its_test() -> None:
    claims = [row for row in table_rows(6) if row[2] != "no"] + [row for row in table_rows(4) if row[1] != "no"]
    link = r"\[test_\w+\]\(\.\./tests/[\w./]+\.py\)"
    assert claims
    assert [row for row in claims if not re.fullmatch(rf"{link}(, {link})*", row[-1])] == []


def test_every_test_that_the_compatibility_page_names_exists() -> None:
    named = re.findall(r"\[(test_\w+)\]\(\.\./(tests/[\w./]+\.py)\)", COMPATIBILITY)
    assert named
    assert [(test, path) for test, path in named if not _is_defined(test, path)] == []


def test_every_test_that_the_behaviour_page_names_exists() -> None:
    """Written `tests/…/test_x.py::test_y` there."""
    named = re.findall(r"`(tests/[\w./]+\.py)::(test_\w+)`", BEHAVIOUR)
    assert [(test, path) for path, test in named if not _is_defined(test, path)] == []


# Of each series how many rules speak of the client, of those that the page's tables are about.
RULES = {"S0": 79, "S1": 77, "S2": 15, "S3": 26, "S4": 14, "P2": 128}


def test_the_behaviour_page_has_a_line_for_each_rule() -> None:
    named: set[tuple[str, int]] = set()
    for series, first, last in re.findall(r"\b(S\d|P2)-(\d+)(?: (?:to|…) (?:\1-)?(\d+))?", BEHAVIOUR):
        named.update((series, number) for number in range(int(first), int(last or first) + 1))
    rules = {(series, number) for series, count in RULES.items() for number in range(1, count + 1)}
    assert sorted(rules - named) == []


def test_each_line_of_the_behaviour_page_names_its_tests_one_by_one_or_says_why_there_are_none() -> None:
    rows = [line[2:-2].split(" | ") for line in BEHAVIOUR.splitlines() if re.match(r"\| (?!Rule )", line)]
    assert len(rows) > 200
    assert [row for row in rows if len(row) != 3 or not row[1].strip()] == []
    test = r"`tests/[\w./]+\.py::test_\w+`"
    assert [row for row in rows if not re.fullmatch(rf"{test}(, {test})*|–", row[2])] == []


def _is_defined(test: str, path: str) -> bool:
    return (ROOT / path).exists() and f"def {test}(" in (ROOT / path).read_text(encoding="utf-8")
