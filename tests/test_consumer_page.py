"""docs/CONSUMER.md, walked as a newcomer would: a new Django project of the snippets of the page, and what it says.

What the page's names stand for (`send_mail`, a Celery task, a context manager) is all that is added.
"""

from __future__ import annotations

import ast
import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.children import Child
from tests.support.our_broker import OurBroker
from tests.support.redis_server import RedisServer
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "CONSUMER.md").read_text(encoding="utf-8")
SNIPPETS = [found[1] for found in re.finditer(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)]

SETTINGS = """
SECRET_KEY = "of a test"
USE_TZ = True
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "db.sqlite3", "OPTIONS": {"timeout": 20}}}
INSTALLED_APPS = ["django.contrib.contenttypes", "shop"]
INSTALLED_APPS += ["consumer"]
MQADMIN_CLUSTERS = {"payments": "10.0.0.5:9876;10.0.0.6:9876"}
"""
MAIL = """
class MailboxClosed(Exception): ...

async def send_mail(customer, subject): ...
"""
TASKS = """
from celery import shared_task

@shared_task
def bill(order): ...
"""
MIDDLEWARE = """
from contextlib import contextmanager

@contextmanager
def tenant_of(name):
    yield

"""
ALL_INSTANCES_S = 90.0

pytestmark = pytest.mark.journey


def snippet(*words: str) -> str:
    """Returns the only snippet that has all these words."""
    (found,) = [text for text in SNIPPETS if all(word in text for word in words)]
    return found


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("walk")
    shop = folder / "shop"
    shop.mkdir()
    (folder / "project").mkdir()
    files = {
        "project/__init__.py": "from project.celery import app\n",
        "project/celery.py": snippet("Celery("),
        "project/settings.py": SETTINGS,
        "shop/__init__.py": "",
        "shop/mail.py": MAIL,
        "shop/tasks.py": TASKS,
        "shop/middleware.py": MIDDLEWARE + snippet("def tenant(").partition("]\n")[2],
        "shop/listeners.py": "".join(
            snippet(*words) for words in (["bill(message"], ["class Step"], ["mail_customer"], ["broadcasting=True"])
        ),
        "test_shop.py": snippet("def test_a_paid"),
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    run(folder, "-m", "django", "migrate", "-v", "0")
    return folder


def environment(folder: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not re.match("MQADMIN|PYTHON|DJANGO|PYTEST|CEL", name)}
    path = f"{folder}{os.pathsep}{ROOT}"
    return {**kept, "DJANGO_SETTINGS_MODULE": "project.settings", "PYTHONPATH": path, **more}


def run(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def hosted(folder: Path) -> list[str]:
    """Returns the group of each instance that runs, in order."""
    with closing(sqlite3.connect(folder / "db.sqlite3", timeout=20)) as database:
        rows = database.execute(
            'SELECT hosted."group" FROM mq_consumer_instancelease lease JOIN mq_consumer_hostedgroup hosted'
            " ON hosted.id = lease.group_id WHERE lease.state = ? ORDER BY 1",
            ["running"],
        )
        return [group for (group,) in rows]


@pytest.mark.parametrize("text", SNIPPETS, ids=lambda text: text.strip().splitlines()[0])
def test_each_snippet_is_python(text: str) -> None:
    ast.parse(text)


def test_the_declarations_of_the_page_are_right_with_its_middleware(project: Path) -> None:
    ways = ("bill_there", "task_listener(bill")
    text = "from consumer import listener\nfrom shop.tasks import bill\n" + "".join(snippet(way) for way in ways)
    text = text.replace('group="billing", topic="orders", arguments', 'group="tasks", topic="orders", arguments')
    more = project / "shop" / "more.py"
    more.write_text(text)
    settings = project / "project" / "with_middleware.py"
    settings.write_text("from project.settings import *\n" + snippet("def tenant(").partition("]\n")[0] + "]\n")
    script = (
        "import django.utils.module_loading as loading; every = loading.autodiscover_modules;"
        " loading.autodiscover_modules = lambda *names, **options: (every(*names, **options), __import__('shop.more'));"
        " from django.core.management import execute_from_command_line as run; run(['', 'check'])"
    )
    environment_ = environment(project, DJANGO_SETTINGS_MODULE="project.with_middleware")
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=project, env=environment_, capture_output=True, text=True, timeout=120
    )
    assert "no issues" in done.stdout, done.stdout + done.stderr


def test_the_tests_of_the_page_pass(project: Path) -> None:
    said = run(
        project,
        "-m",
        "pytest",
        "-q",
        "-p",
        "consumer.testing.plugin",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:randomly",
        "test_shop.py",
    )
    assert "2 passed" in said


@pytest.mark.redis
def test_the_hosting_of_the_page_consumes_and_beat_keeps_supervising(project: Path, tmp_path: Path) -> None:
    """With Celery's own scheduler: the project names no other."""
    commands = [
        line.partition("#")[0].split()[1:]
        for line in PAGE.splitlines()
        if line.startswith("celery -A project") and "-P threads" not in line
    ]
    assert [words[2] for words in commands] == ["worker", "worker", "beat"]
    with OurBroker(tmp_path / "store") as broker, RedisServer(tmp_path) as redis:
        more = {"MQADMIN_NAMESRV": broker.namesrv, "C_FORCE_ROOT": "1"}
        settings = project / "project" / "hosted.py"
        settings.write_text(
            f"from project.settings import *\nCELERY_BROKER_URL = 'redis+socket://{redis.socket}?virtual_host=0'\n"
        )
        env = environment(project, DJANGO_SETTINGS_MODULE="project.hosted", **more)
        children = [
            Child([sys.executable, "-m", "celery", *words], tmp_path / f"{number}.log", cwd=project, env=env)
            for number, words in enumerate(commands)
        ]
        try:
            five = ["billing", "billing", "caches", "mailing", "mailing"]
            wait_until(lambda: hosted(project) == five, ALL_INSTANCES_S, "what the page's listeners want")
            # Of a changed row nobody hears but who looks regularly.
            with closing(sqlite3.connect(project / "db.sqlite3", timeout=20)) as database, database:
                database.execute("UPDATE mq_consumer_hostedgroup SET wanted_instances = 1 WHERE \"group\" = 'ledger'")
            wait_until(lambda: hosted(project) == sorted([*five, "ledger"]), ALL_INSTANCES_S, "an instance of ledger")
        finally:
            for child in reversed(children):
                child.stop()
