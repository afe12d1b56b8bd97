"""Files of dead letters on pages: sent, looked at, refused, replayed, deleted."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from mqadmin.clusters.models import Cluster
from mqadmin.people.roles import Role
from mqadmin.replay_files.models import ReplayFile
from mqadmin.replays.models import ReplayJob
from mqadmin.replays.states import JobState, Target
from tests.mqadmin.console.pages import names_in, text_of
from tests.support.people import make_person

URL = "/clusters/local/replays/files/"
GOOD = {"group": "billing", "body": "x", "origin_topic": "orders"}


def send(http: Client, *lines: Any, name: str = "dead.jsonl") -> Any:
    content = b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines)
    return http.post(URL, {"file": SimpleUploadedFile(name, content)})


@pytest.fixture
def file(http: Client, cluster: Cluster) -> ReplayFile:
    assert send(http, GOOD, b"{", {**GOOD, "group": "mail"}, name="<b>dead</b>.jsonl").status_code == 302
    return ReplayFile.objects.get()


def test_a_file_is_read_and_what_is_wrong_is_named_with_its_line(http: Client, file: ReplayFile) -> None:
    page = http.get(f"{URL}{file.pk}/")
    text = text_of(page)
    assert "One of 3 lines is wrong" in text
    assert "it is not the JSON of a dead letter" in text
    assert names_in(page) == ["", "billing", "mail", "2"]
    assert f"/clusters/local/groups/billing/deadletters/replay/?file={file.pk}" in page.content.decode()
    assert names_in(http.get(f"{URL}{file.pk}/?wrong=0"))[3:] == ["1", "2", "3"]
    assert names_in(http.get(URL)) == [str(file.pk)]


def test_what_is_no_file_is_refused_on_the_page_that_took_it(http: Client, cluster: Cluster) -> None:
    page = send(http, b"PK\x03\x04")
    assert page.status_code == 422
    assert "The file is compressed" in text_of(page)
    assert http.post(URL).status_code == 422
    assert not ReplayFile.objects.exists()


def test_a_viewer_sees_files_and_sends_none(client: Client, file: ReplayFile, cluster: Cluster) -> None:
    client.force_login(make_person("eve", Role.VIEWER))
    page = client.get(URL)
    assert names_in(page) == [str(file.pk)]
    assert b'type="file"' not in page.content
    assert send(client, GOOD).status_code == 403
    assert b"Replay\xe2\x80\xa6" not in client.get(f"{URL}{file.pk}/").content


@pytest.mark.parametrize("garbage", ["?after=x", "?after=" + "9" * 30, "?wrong=7", "?after=1&wrong=0"])
def test_garbage_in_the_address_shows_the_page(http: Client, file: ReplayFile, garbage: str) -> None:
    assert http.get(f"{URL}{file.pk}/{garbage}").status_code == 200
    assert http.get(f"{URL}{garbage}").status_code == 200


def test_a_file_is_deleted_unless_a_replay_of_it_has_not_ended(http: Client, file: ReplayFile) -> None:
    job = ReplayJob.objects.create(
        cluster=file.cluster,
        identity="x",
        group_name="billing",
        selection={"file": file.pk},
        until_id=0,
        target=Target.GROUP,
        rate_per_s=1,
        stop_percent=5,
        created_at=timezone.now(),
    )
    assert f"Replay {job.pk}" in text_of(http.get(f"{URL}{file.pk}/"))
    url = f"{URL}{file.pk}/delete/"
    assert "has not ended" in text_of(http.get(url))
    ReplayJob.objects.update(state=JobState.DONE)
    assert "What it will do" in text_of(http.get(url))
    http.post(url, {"file": file.pk, "key": "one"})
    assert not ReplayFile.objects.exists()
    assert http.get(f"{URL}{file.pk}/").status_code == 404
    assert http.get(f"/clusters/local/replays/{job.pk}/").status_code == 200
