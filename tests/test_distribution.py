"""The wheel and the sdist: what is inside, and a project that uses the installed wheel, with and without the console.

Installed without the network: the wheel alone, beside the packages of this environment.
"""

from __future__ import annotations

import os
import re
import site
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.journey

SETTINGS = """
SECRET_KEY = "of a test"
USE_TZ = True
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "shop.sqlite3"}}
INSTALLED_APPS = ["django.contrib.contenttypes", "consumer", "shop"]
"""
LISTENERS = """
import msgspec
from consumer import Message, listener

class Order(msgspec.Struct):
    cents: int

@listener(group="billing", topic="orders", tags="paid", body=Order, once=True)
def bill(message: Message[Order]) -> None:
    print("billed", message.data.cents)
"""
TESTS = """
import pytest

@pytest.mark.django_db(transaction=True)
def test_a_paid_order_is_billed(mq, capsys):
    mq.send("orders", {"cents": 1200}, tags="paid")
    mq.send("orders", {"cents": "many"}, tags="paid")
    assert capsys.readouterr().out == "billed 1200\\n"
    mq.run_until_quiet()
    assert [one.json() for one in mq.dead_letters("billing")] == [{"cents": "many"}]
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    _run([sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)], folder)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the wheel, and with this environment's other packages."""
    folder = tmp_path_factory.mktemp("env")
    venv.create(folder, with_pip=False)
    (packages,) = folder.glob("lib/python*/site-packages")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--disable-pip-version-check"]
    _run([*pip, "--target", str(packages), str(wheel)], folder)
    (packages / "others.pth").write_text("\n".join(site.getsitepackages()))
    return folder / "bin" / "python"


def test_the_wheel_has_templates_static_files_and_the_compiled_catalogue(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {
        "mqadmin/templates/base.html",
        "mqadmin/static/console.css",
        "mqadmin/locale/zh_Hans/LC_MESSAGES/django.mo",
        "consumer/migrations/0001_initial.py",
        "consumer/testing/plugin.py",
    } <= names
    here = {f"mqadmin/{path.relative_to(ROOT)}" for kind in ("templates", "static") for path in _files(ROOT / kind)}
    assert here <= names
    assert not [name for name in names if name.startswith(("tests/", "bench/", "examples/", "var/"))]


def test_the_sdist_has_what_the_wheel_is_built_of(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "templates/base.html", "static/console.css", "manage.py", "LICENSE"} <= names
    assert not [name for name in names if name.startswith(("var/", ".venv", ".git/"))]


def test_a_project_of_its_own_needs_no_console(python: Path, tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    (shop / "__init__.py").touch()
    (shop / "listeners.py").write_text(LISTENERS)
    (tmp_path / "settings.py").write_text(SETTINGS)
    (tmp_path / "test_shop.py").write_text(TESTS)
    django = [str(python), "-m", "django"]
    assert "no issues" in _run([*django, "check"], tmp_path)
    _run([*django, "migrate", "-v", "0"], tmp_path)
    assert "0 silenced" in _run([*django, "check", "--tag", "consumer"], tmp_path)
    unknown = _run([*django, "runconsumer", "nobody"], tmp_path, returncode=1)
    assert "known are: billing" in unknown
    tested = _run([str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_shop.py"], tmp_path)
    assert "1 passed" in tested
    where = _run(
        [str(python), "-c", "import sys, consumer; print(consumer.__file__, 'mqadmin' in sys.modules)"], tmp_path
    )
    assert str(ROOT) not in where
    assert where.endswith("False\n")


def test_apps_run_inside_of_the_installed_console(python: Path, tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    (shop / "__init__.py").touch()
    (shop / "listeners.py").write_text(LISTENERS)
    env = {"DJANGO_SETTINGS_MODULE": "mqadmin.settings", "MQADMIN_APPS": "shop", "MQADMIN_DATA": str(tmp_path / "data")}
    command = [str(python), "-c", "import sys; from mqadmin.command import main; sys.exit(main())"]
    _run([*command, "migrate", "-v", "0"], tmp_path, **env)
    assert "known are: billing" in _run([*command, "runconsumer", "nobody"], tmp_path, returncode=1, **env)
    page = (
        "import django; django.setup(); from django.test import Client;"
        " from django.contrib.staticfiles import finders;"
        " answer = Client(SERVER_NAME='127.0.0.1').get('/login/', headers={'accept-language': 'zh-hans'});"
        " print(answer.status_code, '登录' in answer.content.decode(), bool(finders.find('console.css')))"
    )
    assert _run([str(python), "-c", page], tmp_path, **env).splitlines()[-1] == "200 True True"


def test_the_requirements_of_an_install_are_those_of_a_checkout() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    optional = project["optional-dependencies"]
    assert {*project["dependencies"], *optional["console"]} == _required("core.in")
    assert {*optional["reports"]} == _required("reports.in")


def _required(name: str) -> set[str]:
    lines = (ROOT / "requirements" / name).read_text().splitlines()
    return {line for line in lines if line and not line.startswith(("#", "-"))}


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def _run(command: list[str], folder: Path, *, returncode: int = 0, **env: str) -> str:
    """Returns what the command wrote; nothing of this checkout is on its path."""
    kept = {name: value for name, value in os.environ.items() if not re.match("MQADMIN|PYTHON|DJANGO|PYTEST", name)}
    done = subprocess.run(
        command,
        cwd=folder,
        env={**kept, "DJANGO_SETTINGS_MODULE": "settings", "PYTHONPATH": str(folder), **env},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == returncode, done.stdout + done.stderr
    return done.stdout + done.stderr
