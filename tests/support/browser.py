"""Chromium, and the console as a site of its own: uvicorn and a real Redis as processes, rows written by a story.

Import the fixtures that a test needs. They don't use pytest-playwright's: those live as long as the session and keep an
event loop running in the main thread, on which no asynchronous test could run afterwards.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import redis
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from mqadmin.supervision.redis_server import NoRedis, find_redis_server, redis_command
from tests.support.celery_worker import CeleryWorker
from tests.support.children import Child, free_port
from tests.support.migrated import FILE, bring_migrated_database, migrated_database
from tests.support.tools import require
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]
READY_WITHIN_S = 120.0
# Keys under which a worker declares its queues, once.
WORKERS_QUEUES = b"_kombu.binding."
PASSWORD = "let-me-in-please"
# Two cores may be busy with brokers and workers of other tests: the description of the API takes half a minute then.
PAGE_WITHIN_MS = 120_000
expect.set_options(timeout=PAGE_WITHIN_MS)


# The first has no windows to draw, and takes half of the others' time.
PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


def chromium_path() -> str | None:
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    path = chromium_path()
    require(path, "no Chromium: Debian: apt install chromium-headless-shell")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


def open_context(chromium: Browser, **options: Any) -> BrowserContext:
    """Opens a browser context, as `Browser.new_context` does, whose pages wait longer for what they act on."""
    context = chromium.new_context(**options)
    context.set_default_timeout(PAGE_WITHIN_MS)
    return context


class Site:
    """The console on a free port. Starts on entering, stops on leaving; `carry_out` makes something happen to it."""

    def __init__(
        self, folder: Path, env: Mapping[str, str] | None = None, *, application: str = "mqadmin.asgi:application"
    ) -> None:
        self.folder = folder
        self._application = application
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._socket = folder / "redis.sock"
        self._env = {
            "MQADMIN_DATA": str(folder),
            "MQADMIN_WEB": f"127.0.0.1:{self.port}",
            "REDIS_URL": f"unix://{self._socket}?db=0",
            "DATABASE_URL": "",
            "MQADMIN_APPS": "",
            "DJANGO_SETTINGS_MODULE": "mqadmin.settings",
            **(env or {}),
        }
        self._children: list[Child] = []
        self._web: Child | None = None

    def __enter__(self) -> Site:
        try:
            self._start("redis", redis_command(find_redis_server(), self._socket))
            story = [sys.executable, "-m", "tests.support.console_story"]
            self._story = self._start("story", story, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            bring_migrated_database(self.folder)
            self.start_web()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for child in reversed(self._children):
            child.stop()

    def start_web(self) -> None:
        """Returns when it answers."""
        command = [sys.executable, "-m", "uvicorn", self._application, "--port", str(self.port)]
        # As mqadmin/web.py has it.
        command += ["--ws", "mqadmin.answering_sockets:AnsweringWebSocket", "--ws-per-message-deflate", "False"]
        self._web = self._start("web", [*command, "--log-level", "warning", "--timeout-graceful-shutdown", "1"])
        wait_until(self._answers, READY_WITHIN_S, "the console's first answer")

    def stop_web(self) -> None:
        assert self._web is not None
        self._web.stop()
        self._children.remove(self._web)

    def begin_anew(self) -> None:
        """Makes it the install that it was on entering; its processes go on, workers on their queues, too."""
        assert self._web is not None
        if not self._web.is_running:
            self.start_web()
        with (
            closing(sqlite3.connect(migrated_database())) as empty,
            closing(sqlite3.connect(self.folder / FILE)) as own,
        ):
            empty.backup(own)
        with closing(redis.Redis(unix_socket_path=str(self._socket))) as connected:
            if keys := [key for key in connected.scan_iter() if not key.startswith(WORKERS_QUEUES)]:
                connected.delete(*keys)

    def worker(self, queue: str) -> CeleryWorker:
        """Returns a worker of this install; enter it while the site runs."""
        return CeleryWorker(f"{queue}-worker", queue, self.folder, self._env)

    def carry_out(self, step: str, **arguments: Any) -> Any:
        """Runs a step of `console_story`; returns what it returns, when it has happened."""
        child = self._story.process
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(json.dumps({"step": step, **arguments}).encode() + b"\n")
        child.stdin.flush()
        answer = child.stdout.readline()
        assert answer, f"the story broke off at {step}:\n{self._story.output()}"
        return json.loads(answer)

    def _start(self, name: str, command: list[str], **pipes: int) -> Child:
        child = Child(command, self.folder / f"{name}.log", cwd=ROOT, env=self._env, **pipes)
        self._children.append(child)
        return child

    def _answers(self) -> bool:
        assert self._web is not None
        assert self._web.is_running, self._web.output()
        try:
            with urllib.request.urlopen(f"{self.url}/healthz", timeout=1) as response:
                return bool(response.status == 200)
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False


@pytest.fixture(scope="module")
def standing_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Its processes take longer to start than most of what is tested on them takes."""
    try:
        find_redis_server()
    except NoRedis as error:
        require(None, str(error))
    with Site(tmp_path_factory.mktemp("site")) as running:
        yield running


@pytest.fixture
def site(standing_site: Site) -> Site:
    """An install with an administrator and no cluster."""
    standing_site.begin_anew()
    standing_site.carry_out("admin", password=PASSWORD)
    return standing_site


@pytest.fixture
def page(chromium: Browser, site: Site) -> Iterator[Page]:
    """A page that must not log an error, log-in page open."""
    errors: list[str] = []
    context = open_context(chromium, base_url=site.url, viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if _is_fault(message.text, message.type) else None)
    page.goto("/")
    yield page
    context.close()
    assert not errors, "\n".join(errors)


def _is_fault(text: str, kind: str) -> bool:
    """A server that is away is what some tests are about; a refused inline script is not."""
    return kind == "error" and "WebSocket connection" not in text and "Failed to load resource" not in text


def log_in(page: Page, password: str = PASSWORD) -> None:
    page.get_by_label("Name").fill("admin")
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", level=1)).not_to_have_text("Log in")
