"""A cluster with three dead letters, and files of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.test import Client
from django.utils import timezone

from mqadmin.clusters.models import Cluster
from mqadmin.replay_files.models import FileMessage, ReplayFile
from mqadmin.replay_files.storing import store
from tests.support import console_rows as seed
from tests.support.dead_letter_brokers import dead_message

Store = Callable[..., ReplayFile]


@pytest.fixture
def prod(db: None) -> Cluster:
    now = timezone.now()
    cluster = seed.make_cluster("prod", now=now)
    bodies = [b'{"id": 0}', "gr\u00fc\u00df".encode(), b"\xff\x00\xfe"]
    letters = [dead_message(number, body=body) for number, body in enumerate(bodies)]
    seed.make_dead_letters(cluster, "billing", letters, now=now)
    return cluster


@pytest.fixture
def exported(prod: Cluster, admin_client: Client) -> Callable[[str], bytes]:
    """Returns the whole export in a format."""

    def export(format: str) -> bytes:
        answer = admin_client.get(f"/api/v1/clusters/prod/dead-letters/export?format={format}")

        async def whole() -> bytes:
            return b"".join([chunk async for chunk in answer.streaming_content])  # type: ignore[attr-defined]

        return async_to_sync(whole)()

    return export


@pytest.fixture
def take(prod: Cluster) -> Store:
    """Stores a file: bytes, or the lines of JSON Lines as documents."""

    def take(content: bytes | list[Any], name: str = "dead.jsonl") -> ReplayFile:
        if isinstance(content, list):
            content = b"\n".join(json.dumps(one).encode() for one in content)
        return store(prod, name, [content], by="ann")[0]

    return take


def problems(file: ReplayFile) -> dict[int, str]:
    """Returns what is wrong, by line, of a file whose counts add up."""
    rows = FileMessage.objects.filter(file=file)
    assert file.line_count == rows.count() == file.message_count + file.wrong_count
    found = {row.line: row.problem for row in rows if row.problem}
    assert len(found) == file.wrong_count
    return found
