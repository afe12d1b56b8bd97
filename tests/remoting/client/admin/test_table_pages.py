from __future__ import annotations

import json

import pytest

from remoting.client.admin.table_pages import GROUP_PAGES, PAGE_ENTRIES_MAX, TOPIC_PAGES, next_page
from remoting.wire.command import Command
from remoting.wire.errors import BodyError

VERSION = {"counter": 3, "timestamp": 1}


def page(entries: int, total: int | None = None, version: object = VERSION) -> Command:
    body = {"dataVersion": version, "topicConfigTable": {f"t{number}": {} for number in range(entries)}}
    fields = {} if total is None else {"totalTopicNum": str(total)}
    return Command(code=0, ext_fields=fields, body=json.dumps(body).encode())


def asked(first: int, version: object = VERSION) -> dict[str, str]:
    return {"topicSeq": str(first), "maxTopicNum": "2000", "dataVersion": json.dumps(version, separators=(",", ":"))}


def test_a_server_that_does_not_page_gave_everything() -> None:
    assert next_page(TOPIC_PAGES, {}, page(7)) is None


def test_a_total_that_is_reached_ends_it() -> None:
    assert next_page(TOPIC_PAGES, {}, page(7, 7)) is None


def test_the_next_page_begins_where_this_one_ended() -> None:
    assert next_page(TOPIC_PAGES, {}, page(3, 7)) == asked(3)
    assert next_page(TOPIC_PAGES, asked(3), page(3, 7)) == asked(6)


def test_the_last_single_entry_is_requested() -> None:
    """Java stops one too early."""
    assert next_page(TOPIC_PAGES, {}, page(2000, 2001)) == asked(2000)
    assert next_page(TOPIC_PAGES, asked(2000), page(1, 2001)) is None


def test_a_table_that_changed_meanwhile_is_read_from_the_start() -> None:
    newer = {"counter": 4, "timestamp": 2}
    assert next_page(TOPIC_PAGES, asked(3), page(3, 7, newer)) == asked(3, newer)


def test_an_empty_page_ends_it_whatever_the_total_says() -> None:
    assert next_page(TOPIC_PAGES, asked(3), page(0, 7)) is None


def test_a_total_without_end_is_bounded() -> None:
    assert next_page(TOPIC_PAGES, asked(PAGE_ENTRIES_MAX * 1000), page(5, 10**9)) is None


def test_groups_have_their_own_field_names() -> None:
    body = json.dumps({"dataVersion": VERSION, "subscriptionGroupTable": {"g": {}}}).encode()
    answer = Command(code=0, ext_fields={"totalGroupNum": "2"}, body=body)
    fields = next_page(GROUP_PAGES, {}, answer)
    assert fields is not None
    assert (fields["groupSeq"], fields["maxGroupNum"]) == ("1", "2000")


def test_a_body_that_is_no_table_is_refused() -> None:
    with pytest.raises(BodyError):
        next_page(TOPIC_PAGES, {}, Command(code=0, ext_fields={"totalTopicNum": "2"}, body=b"[]"))
