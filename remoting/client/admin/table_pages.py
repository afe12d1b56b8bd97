"""Pages of the topic and group tables (21, 201): servers since 5.3.4 page on request, older ones send the whole table.

The first request has no paging fields, as of old clients, and gets everything. Where a server pages all the same, its
total says so, and the next request begins behind the entries that have come (Java stops one entry too early).
"""

from __future__ import annotations

import msgspec

from remoting.wire import lenient_json
from remoting.wire.command import Command
from remoting.wire.errors import BodyError

PAGE_ENTRIES_MAX = 2000
# Ends the requests to a server whose total is never reached, or whose table changes with each page.
PAGES_MAX = 1000
# What is read of one table: the settings of about 150,000 groups or 300,000 topics.
TABLE_BYTES_MAX = 64 * 1024 * 1024
_ENTRIES_MAX = PAGE_ENTRIES_MAX * PAGES_MAX


class Paging(msgspec.Struct, frozen=True):
    """Names of the fields: first entry wanted, page size, and in the answer the total; and the table in the body."""

    sequence: str
    page_size: str
    total: str
    table: str


TOPIC_PAGES = Paging("topicSeq", "maxTopicNum", "totalTopicNum", "topicConfigTable")
GROUP_PAGES = Paging("groupSeq", "maxGroupNum", "totalGroupNum", "subscriptionGroupTable")


def next_page(paging: Paging, requested: dict[str, str], answer: Command) -> dict[str, str] | None:
    """Returns the request fields of the next page; None when the table is complete. Raises BodyError."""
    total = answer.ext_fields.get(paging.total, "")
    if not total.isdecimal():
        return None
    body = lenient_json.loads(answer.body)
    if not isinstance(body, dict):
        raise BodyError(f"{paging.table}: the body is no object")
    fetched = len(body.get(paging.table) or {})
    first = int(requested.get(paging.sequence, "0"))
    data_version = msgspec.json.encode(body.get("dataVersion")).decode()
    if first and data_version != requested["dataVersion"]:
        first = 0  # the table changed meanwhile: the server sent its beginning
    reached = first + fetched
    if not fetched or reached >= min(int(total), _ENTRIES_MAX):
        return None
    return {paging.sequence: str(reached), paging.page_size: str(PAGE_ENTRIES_MAX), "dataVersion": data_version}
