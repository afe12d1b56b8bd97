"""What the environment says, and the folder that holds everything."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db.utils import ConnectionHandler

from mqadmin import environment
from mqadmin.data_folder import open_data_folder, secret_key
from mqadmin.web import pool_connections

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("redis_url", "celery_url"),
    [
        ("unix:///run/mq/redis.sock?db=0", "redis+socket:///run/mq/redis.sock?virtual_host=0"),
        ("unix:///run/mq/redis.sock?db=3", "redis+socket:///run/mq/redis.sock?virtual_host=3"),
        ("unix:///run/mq/redis.sock", "redis+socket:///run/mq/redis.sock?virtual_host=0"),
        ("redis://10.0.0.1:6379/2", "redis://10.0.0.1:6379/2"),
        ("rediss://10.0.0.1:6379/2", "rediss://10.0.0.1:6379/2"),
    ],
)
def test_redis_address_is_written_as_celery_reads_it(redis_url: str, celery_url: str) -> None:
    assert environment.celery_url(redis_url) == celery_url


def test_database_is_sqlite_with_a_log_unless_a_url_says_otherwise(tmp_path: Path) -> None:
    embedded = environment.database(None, tmp_path)
    assert embedded["NAME"] == str(tmp_path / "mqadmin.sqlite3")
    assert embedded["OPTIONS"]["transaction_mode"] == "IMMEDIATE"
    assert "journal_mode=WAL" in embedded["OPTIONS"]["init_command"]
    named = environment.database(f"sqlite:///{tmp_path}/other.db", tmp_path)
    assert named["OPTIONS"]["transaction_mode"] == "IMMEDIATE"


def test_postgresql_is_used_through_a_bounded_pool_by_the_web_process_alone(tmp_path: Path) -> None:
    url = "postgres://ann:secret@10.0.0.1/mq"
    databases = ConnectionHandler({"default": environment.database(url, tmp_path)}).settings
    assert databases["default"]["ENGINE"] == "django.db.backends.postgresql"
    assert "pool" not in databases["default"]["OPTIONS"]
    pool_connections(databases)
    assert databases["default"]["OPTIONS"]["pool"]["max_size"] == 8
    embedded = ConnectionHandler({"default": environment.database(None, tmp_path)}).settings
    pool_connections(embedded)
    assert "pool" not in embedded["default"]["OPTIONS"]


def test_words_of_a_list_lose_their_blanks() -> None:
    assert environment.words(" shop, ,billing.app ,") == ["shop", "billing.app"]
    assert environment.words(None) == []


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:8000", ("127.0.0.1", 8000)),
        ("8000", ("127.0.0.1", 8000)),
        ("[::1]:80", ("::1", 80)),
        ("mq.example:443", ("mq.example", 443)),
    ],
)
def test_web_address_is_read(text: str, address: tuple[str, int]) -> None:
    assert environment.web_address(text) == address


def test_console_answers_under_the_names_it_was_told() -> None:
    assert environment.allowed_hosts("10.0.0.7:8000", ["mq.example"]) == [
        "localhost",
        "127.0.0.1",
        "[::1]",
        "10.0.0.7",
        "mq.example",
    ]


def test_data_folder_is_for_its_owner_alone(tmp_path: Path) -> None:
    folder = open_data_folder(tmp_path / "deep" / "var")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_data_folder_that_cannot_be_made_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ImproperlyConfigured, match="set MQADMIN_DATA"):
        open_data_folder(tmp_path / "file" / "var")


def test_secret_key_is_made_once_and_private(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(secret_key, [tmp_path] * 16))
    assert len(keys) == 1
    assert len(keys.pop()) >= 50
    assert [path.name for path in tmp_path.iterdir()] == ["secret_key"]
    assert stat.S_IMODE((tmp_path / "secret_key").stat().st_mode) == 0o600


def test_command_with_an_impossible_data_folder_ends_with_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ended = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=ROOT,
        env={**os.environ, "MQADMIN_DATA": str(tmp_path / "file" / "var")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert ended.stderr.count("\n") == 1
    assert "MQADMIN_DATA" in ended.stderr


@pytest.mark.parametrize("text", ["foo", "127.0.0.1:", "127.0.0.1:http", "127.0.0.1:0", "127.0.0.1:70000", ""])
def test_an_address_that_is_none_is_refused_by_its_variables_name(text: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="MQADMIN_WEB is"):
        environment.web_address(text)
    with pytest.raises(ImproperlyConfigured, match="MQADMIN_NAMESRV is"):
        environment.name_servers(text)


@pytest.mark.parametrize("text", ["10.0.0.1:9876", "a:9876;b:9876", "a:9876,b:9876"])
def test_name_servers_are_taken_as_they_are(text: str) -> None:
    assert environment.name_servers(text) == text


def test_further_clusters_are_read_by_name() -> None:
    assert environment.clusters("payments=a:9876;b:9876, stock=c:9876,") == {
        "payments": "a:9876;b:9876",
        "stock": "c:9876",
    }
    assert environment.clusters("") == {}


@pytest.mark.parametrize("text", ["payments", "=a:9876", "payments=a", "one=a:1,one=b:2"])
def test_clusters_that_are_none_are_refused_by_their_variables_name(text: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="MQADMIN_CLUSTERS"):
        environment.clusters(text)


@pytest.mark.parametrize("text", ["abc", "0", "-1", "1.5", ""])
def test_a_number_that_is_none_is_refused_by_its_variables_name(text: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="MQADMIN_INSTANCES is"):
        environment.count("MQADMIN_INSTANCES", text)


def test_a_log_level_that_is_none_is_refused_with_those_that_are() -> None:
    assert environment.log_level("debug") == "DEBUG"
    with pytest.raises(ImproperlyConfigured, match="DEBUG, INFO"):
        environment.log_level("loud")


def test_a_database_address_that_is_none_is_refused_without_repeating_its_password() -> None:
    with pytest.raises(ImproperlyConfigured, match="DATABASE_URL must read like") as refusal:
        environment.database("nonsense://user:secret@host/name", Path("."))
    assert "secret" not in str(refusal.value)


def test_an_app_that_python_does_not_find_is_named() -> None:
    assert environment.apps("examples.shop, consumer") == ["examples.shop", "consumer"]
    for text in ("nowhere_to_be_found", "consumer.nowhere.else", "not a name"):
        with pytest.raises(ImproperlyConfigured, match="add its folder to PYTHONPATH"):
            environment.apps(text)
