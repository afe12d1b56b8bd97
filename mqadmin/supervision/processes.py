"""The table of an install's processes: what runs, in which order it starts, in which it stops, and why.

First the install is made ready, its database migrated before anything uses it. Then all is started bottom up: Redis
carries tasks and events, the broker the messages; the console before the workers, so that a person can log in while the
rest starts. The example's traffic comes with the workers: its first message makes the topic that their listeners wait
for. Stopped top down: first what gives new work (traffic, beat), then consumer instances,
while broker and scheduler are there to take their last offsets and send-backs, and Redis at the very end. SIGTERM to
all processes at once keeps to that, too: broker and Redis don't take it, they wait for their turn.
"""

from __future__ import annotations

import math
import os
import socket
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from mqadmin.supervision.child import PYTHON_MODULE, ChildSpec
from mqadmin.supervision.fork_server import IS_SUPPORTED, READY_TEXT
from mqadmin.supervision.redis_server import find_redis_server, redis_command, socket_path_bytes_max

STOP_ORDER = (
    ("traffic", "beat"),
    ("loops-1", "loops-2"),
    ("reports", "jobs", "following", "scheduler", "web", "fork-server"),
    ("broker",),
    ("redis",),
)

PROBE_TIMEOUT_S = 1.0
# A small machine compiles every module at the first start; a program that cannot start ends long before.
READY_TIMEOUT_S = 120.0
# On macOS billiard starts new interpreters instead of forking; they inherit nothing of the worker's main process.
TASK_POOL = "threads" if sys.platform == "darwin" else "prefork"
# Short tasks, and a cycle of polling now and then.
JOBS_AT_ONCE = 2
# Celery's warning is about pickled tasks, which we don't accept.
_QUIET_ABOUT_ROOT = "ignore:You're running the worker with superuser privileges"
# Consumer instances commit their offsets and finish the message in hand before they go.
LOOPS_STOP_GRACE_S = 20.0


@dataclass(frozen=True)
class Install:
    """This install, as its settings describe it. `redis_socket` None: REDIS_URL names another Redis.

    `forks`: a fork server may load the apps for all processes.
    """

    base_dir: Path
    data: Path
    redis_socket: Path | None
    redis_url: str
    web_host: str
    web_port: int
    instances: int
    runs_broker: bool
    namesrv: str
    broker_port: int
    with_traffic: bool
    with_reports: bool = True
    forks: bool = True
    logs_json: bool = False

    @property
    def fork_socket(self) -> Path | None:
        """Where the fork server listens; None where there is none."""
        path = self.data / "fork.sock"
        fits = len(os.fsencode(path)) <= socket_path_bytes_max()
        return path if self.forks and IS_SUPPORTED and fits else None


def processes(install: Install) -> list[list[ChildSpec]]:
    """Stages in the order of starting; the children of a stage start together. Raises NoRedis."""
    environment = {
        "REDIS_URL": install.redis_url,
        "DJANGO_SETTINGS_MODULE": "mqadmin.settings",
        "MQADMIN_LOG_LINES": "json" if install.logs_json else "short",
        "PYTHONPATH": _python_path(install),
    }
    stages = [
        _fork_server(install, environment),
        [_prepare(environment)],
        _redis(install),
        [*_broker(install, environment), _web(install, environment)],
        [
            _worker("scheduler", "scheduler", 1, environment),
            *_loops(install, environment),
            # One long task, and nothing to isolate it from: in a thread it needs no second process.
            _worker("following", "following", 1, environment, pool="threads"),
            _worker("jobs", "jobs", JOBS_AT_ONCE, environment),
            *_reports(install, environment),
            *_traffic(install, environment),
        ],
        [_beat(environment)],
    ]
    return [stage for stage in stages if stage]


def _python_path(install: Install) -> str:
    """Returns where Python finds the project, whatever folder `up` was started in."""
    return os.pathsep.join(filter(None, [str(install.base_dir), os.environ.get("PYTHONPATH", "")]))


def _redis(install: Install) -> list[ChildSpec]:
    if install.redis_socket is None:
        return []
    path = install.redis_socket
    command = redis_command(find_redis_server(), path)
    return [
        ChildSpec(
            "redis",
            tuple(command),
            ready=lambda: _redis_answers(path),
            ready_timeout_s=10,
            is_quiet=True,
            outlives_sigterm=True,
        )
    ]


def _fork_server(install: Install, environment: dict[str, str]) -> list[ChildSpec]:
    if install.fork_socket is None:
        return []
    return [
        ChildSpec(
            "fork-server",
            (*PYTHON_MODULE, "mqadmin.preloaded", str(install.fork_socket)),
            ready_text=READY_TEXT,
            ready_timeout_s=READY_TIMEOUT_S,
            environment={**environment, "PYTHONWARNINGS": _QUIET_ABOUT_ROOT},
        )
    ]


def _prepare(environment: dict[str, str]) -> ChildSpec:
    """Returns what takes however long the migrations take, and prints a new admin's password."""
    return ChildSpec(
        "prepare",
        (*PYTHON_MODULE, "mqadmin.command", "prepare"),
        ready_timeout_s=math.inf,
        is_forked=True,
        runs_once=True,
        environment=environment,
    )


def _broker(install: Install, environment: dict[str, str]) -> list[ChildSpec]:
    if not install.runs_broker:
        return []
    namesrv_port = install.namesrv.rpartition(":")[2]
    return [
        _manage(
            "broker",
            "runbroker",
            *("--namesrv-port", namesrv_port),
            *("--port", str(install.broker_port)),
            *("--store", str(install.data / "store")),
            *("--scheduler", "celery"),
            environment=environment,
            ready_text="broker ready",
            outlives_sigterm=True,
        )
    ]


def _web(install: Install, environment: dict[str, str]) -> ChildSpec:
    url = f"http://{install.web_host}:{install.web_port}/healthz"
    return ChildSpec(
        "web",
        (*PYTHON_MODULE, "mqadmin.web"),
        is_forked=True,
        ready=lambda: _web_answers(url),
        ready_timeout_s=READY_TIMEOUT_S,
        environment=environment,
    )


def _loops(install: Install, environment: dict[str, str]) -> list[ChildSpec]:
    """Returns two workers that share the instances, so that one's death leaves members that take its queues at once."""
    first = (install.instances + 1) // 2
    second = install.instances - first
    specs = [_worker("loops-1", "loops", first, environment, stop_grace_s=LOOPS_STOP_GRACE_S)]
    if second:
        specs.append(_worker("loops-2", "loops", second, environment, stop_grace_s=LOOPS_STOP_GRACE_S))
    return specs


def _reports(install: Install, environment: dict[str, str]) -> list[ChildSpec]:
    """Returns the worker that starts a process for each run of the job; its own thread only waits for it."""
    if not install.with_reports:
        return []
    return [_worker("reports", "reports", 1, environment, pool="threads", stops_group=True)]


def _worker(
    name: str,
    queue: str,
    concurrency: int,
    environment: dict[str, str],
    *,
    pool: str = TASK_POOL,
    stop_grace_s: float = 10.0,
    stops_group: bool = False,
) -> ChildSpec:
    return ChildSpec(
        name,
        (
            *(*PYTHON_MODULE, "celery", "--quiet", "-A", "mqadmin", "worker"),
            *("-Q", queue, "-n", f"{name}@%h", "-P", pool, "-c", str(concurrency), "-l", "INFO"),
            *("--without-gossip", "--without-mingle", "--without-heartbeat"),
        ),
        ready_text=" ready.",
        ready_timeout_s=READY_TIMEOUT_S,
        stop_grace_s=stop_grace_s,
        stops_group=stops_group,
        is_forked=True,
        environment={**environment, "PYTHONWARNINGS": _QUIET_ABOUT_ROOT},
    )


def _beat(environment: dict[str, str]) -> ChildSpec:
    command = (*PYTHON_MODULE, "celery", "--quiet", "-A", "mqadmin", "beat", "-l", "WARNING", "--pidfile=")
    return ChildSpec("beat", command, is_forked=True, environment=environment)


def _traffic(install: Install, environment: dict[str, str]) -> list[ChildSpec]:
    if not install.with_traffic:
        return []
    return [_manage("traffic", "shop_traffic", environment=environment, ready_text=None, is_forked=True)]


def _manage(
    name: str,
    *arguments: str,
    environment: dict[str, str],
    ready_text: str | None,
    outlives_sigterm: bool = False,
    is_forked: bool = False,
) -> ChildSpec:
    return ChildSpec(
        name,
        (*PYTHON_MODULE, "mqadmin.command", *arguments),
        ready_text=ready_text,
        ready_timeout_s=READY_TIMEOUT_S,
        outlives_sigterm=outlives_sigterm,
        is_forked=is_forked,
        environment=environment,
    )


def _redis_answers(path: Path) -> bool:
    try:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(PROBE_TIMEOUT_S)
            probe.connect(os.fspath(path))
            probe.sendall(b"PING\r\n")
            return probe.recv(16).startswith(b"+PONG")
    except OSError:
        return False


def _web_answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=PROBE_TIMEOUT_S) as answer:  # noqa: S310 - our own address
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False
