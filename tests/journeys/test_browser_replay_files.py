"""Dead letters exported, changed outside and sent back in a browser, on a real broker, in English and in Chinese."""

# ruff: noqa: F811 - fixtures are imported and asked for by the same name

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.journeys.dead_letter_site import (  # noqa: F401 - fixtures
    CHINESE,
    DEAD,
    ENGLISH,
    Words,
    ask,
    broker,
    carry_out,
    confirm,
    group,
    link,
    opened,
    site,
    standing_site,
)
from tests.support.browser import Site, chromium  # noqa: F401 - fixtures
from tests.support.failing_group import FailingGroup

pytestmark = [pytest.mark.journey, pytest.mark.browser, pytest.mark.redis, pytest.mark.timeout(1800)]

BODIES = [f'{{"order":{number}}}' for number in range(4)]


@dataclass(frozen=True, slots=True)
class FileWords:
    """What pages say of files, in one language."""

    words: Words
    no_file: str
    wrong: str
    no_json: str
    elsewhere: str
    dry_run: str
    changed: str
    line: str


IN_ENGLISH = FileWords(
    words=ENGLISH,
    no_file="The file is compressed",
    wrong="2 of 5 lines are wrong",
    no_json="it is not the JSON of a dead letter",
    elsewhere="it is a dead letter of cluster elsewhere",
    dry_run="2 lines of the file are wrong",
    changed="1 message of the file is not as this console knows it",
    line="line 4",
)
IN_CHINESE = FileWords(
    words=CHINESE,
    no_file="文件是压缩的",
    wrong="5 行中有 2 行有误",
    no_json="不是死信的 JSON",
    elsewhere="它是集群 elsewhere 的死信",
    dry_run="文件中有 2 行有误",
    changed="文件中有 1 条消息",
    line="第 4 行",
)


def exported(page: Page, file: Path) -> Path:
    """Returns the file that the list's link gives, in the format of its name."""
    page.goto("/clusters/here/groups/billing/deadletters/")
    with page.expect_download() as download:
        page.locator(f"a[download][href*='format={file.suffix[1:]}']").click()
    download.value.save_as(file)
    return file


def send(page: Page, file: Path) -> None:
    page.locator("#ask input[type=file]").set_input_files(file)
    ask(page)


@pytest.mark.parametrize("said", [IN_ENGLISH, IN_CHINESE], ids=["English", "Chinese"])
def test_an_export_is_changed_sent_back_looked_at_and_replayed(
    chromium: Browser, site: Site, group: FailingGroup, tmp_path: Path, said: FileWords
) -> None:
    words = said.words
    group.send_and_fail(*BODIES)
    site.carry_out("indexed", dead_count=4)
    page = opened(chromium, site, words)
    export = exported(page, tmp_path / "export.jsonl").read_text()
    lines = sorted(map(json.loads, export.splitlines()), key=lambda line: str(line["body"]))
    assert [line["body"] for line in lines] == BODIES

    # What is no file is refused where it was chosen.
    page.goto(DEAD)
    link(page, "/replays/files/")
    packed = tmp_path / "packed.zip"
    packed.write_bytes(b"PK\x03\x04")
    send(page, packed)
    expect(page.get_by_role("alert")).to_contain_text(said.no_file)

    # One as it was, one changed, one of them left out, two that are wrong.
    lines[1]["body"] = '{"order":"changed outside"}'
    lines[3]["cluster"] = "elsewhere"
    changed = tmp_path / "changed.jsonl"
    taken = [lines[0], lines[1], lines[2], "{", lines[3]]
    changed.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in taken))
    send(page, changed)
    expect(page.locator("h1")).to_have_text("changed.jsonl")
    file = page.url
    expect(page.locator(".page-head")).to_contain_text(said.wrong)
    expect(page.locator("#lines tbody tr")).to_have_count(2)
    expect(page.locator("#lines tr[data-row='4']")).to_contain_text(said.no_json)
    expect(page.locator("#lines tr[data-row='5']")).to_contain_text(said.elsewhere)
    page.goto(f"{file}?wrong=0")
    expect(page.locator("#lines tbody tr")).to_have_count(5)

    # The dry run has the figures of the file; what was changed outside needs somebody else's approval.
    group.heal()
    link(page, "/deadletters/replay/?file=")
    page.locator("#ask [name=rate]").fill("50")
    ask(page)
    warnings = page.locator("#preview .warnings")
    for text in (said.dry_run, said.changed, words.approval):
        expect(warnings).to_contain_text(text)
    confirm(page, words)
    grace = opened(chromium, site, words, "grace")
    grace.goto("/clusters/here/replays/1/approve/")
    carry_out(grace, words)

    # The ledger has every line: three that were sent, two that were refused from the beginning.
    page.goto("/clusters/here/replays/1/")
    expect(page.locator("main .page-head .status").first).to_have_text(words.done)
    expect(page.locator("[data-cell=sent]")).to_have_text("3")
    expect(page.locator("[data-cell=refused]")).to_have_text("2")
    page.locator("[data-cell=refused] a").click()
    expect(page.locator("#ledger tbody tr")).to_have_count(2)
    expect(page.locator("#ledger tbody tr", has_text=said.line)).to_contain_text(said.no_json)
    group.wait_consumed('{"order":0}', '{"order":"changed outside"}', '{"order":2}')
    assert len(group.consumed) == 3
    page.goto(file)
    expect(page.locator("#replays")).to_contain_text(words.done)


@pytest.mark.parametrize("said", [IN_ENGLISH, IN_CHINESE], ids=["English", "Chinese"])
def test_a_table_is_exported_changed_by_a_spreadsheet_and_replayed(
    chromium: Browser, site: Site, group: FailingGroup, tmp_path: Path, said: FileWords
) -> None:
    words = said.words
    # What a spreadsheet would take for a formula, a cell's end, a line's end.
    bodies = ["=1+1", 'one "quoted", two', "two\nlines"]
    group.send_and_fail(*bodies)
    site.carry_out("indexed", dead_count=3)
    page = opened(chromium, site, words)
    with exported(page, tmp_path / "export.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert sorted(row["body"] for row in rows) == sorted(["'=1+1", *bodies[1:]])
    changed = tmp_path / "changed.csv"
    with changed.open("w", newline="") as file:
        # As a spreadsheet writes it in many countries.
        writer = csv.DictWriter(file, list(rows[0]), delimiter=";")
        writer.writeheader()
        writer.writerows(rows)
    page.goto(DEAD)
    link(page, "/replays/files/")
    send(page, changed)
    expect(page.locator("h1")).to_have_text("changed.csv")
    group.heal()
    link(page, "/deadletters/replay/?file=")
    carry_out(page, words, rate="50")
    page.goto("/clusters/here/replays/1/")
    expect(page.locator("main .page-head .status").first).to_have_text(words.done)
    expect(page.locator("[data-cell=sent]")).to_have_text("3")
    group.wait_consumed(*bodies)
    assert sorted(group.consumed) == sorted(bodies)
