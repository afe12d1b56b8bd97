"""The description: the file in the repository is the one of the code, and what it promises holds."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest
import yaml
from django.test import Client
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiYamlRenderer
from drf_spectacular.validation import validate_schema

from mqadmin.actions import registry

ROOT = Path(__file__).parents[3]
KEPT = ROOT / "docs" / "openapi.yaml"


def read(text: bytes) -> dict:
    # The reader in C: ten times as fast, and the file has thousands of lines.
    return yaml.load(text, yaml.CSafeLoader)


@pytest.fixture(scope="module")
def description() -> dict:
    GENERATOR_STATS.reset()
    return SchemaGenerator().get_schema(request=None, public=True)


def test_the_description_in_the_repository_is_that_of_the_code(description: dict) -> None:
    generated = OpenApiYamlRenderer().render(description, renderer_context={}).decode()
    assert KEPT.read_text(encoding="utf-8") == generated, (
        "the API has changed: say so in CHANGELOG.md under Unreleased, and write the description anew with "
        "`manage.py spectacular --file docs/openapi.yaml`"
    )


def test_a_change_of_the_description_is_noted_in_the_changelog() -> None:
    """The line about it names the digest of the description, so that no change goes without one."""
    digest = sha256(KEPT.read_bytes()).hexdigest()[:8]
    assert f"docs/openapi.yaml, {digest}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), (
        f"name the description by its digest, {digest}, in the line of CHANGELOG.md that says what has changed"
    )


@pytest.mark.slow
def test_it_is_valid_openapi_without_warnings(description: dict) -> None:
    assert description["openapi"].startswith("3.1")
    validate_schema(description)
    assert not GENERATOR_STATS


def test_every_action_has_its_own_addresses(description: dict) -> None:
    operations = {one["operationId"] for path in description["paths"].values() for one in path.values()}
    assert {f"{verb}_{name}" for verb in ("preview", "run") for name in registry.ACTIONS} <= operations


@pytest.mark.slow
def test_the_description_is_served_as_json_and_yaml_and_for_people(http: Client) -> None:
    served = http.get("/api/v1/openapi.json")
    assert (served.status_code, served["Content-Type"]) == (200, "application/json")
    assert served.json()["paths"].keys() == read(KEPT.read_bytes())["paths"].keys()
    assert read(http.get("/api/v1/openapi.yaml").content)["openapi"].startswith("3.1")
    page = http.get("/api/v1/docs").content.decode()
    assert "/static/drf_spectacular_sidecar/swagger-ui-dist/swagger-ui-bundle.js" in page
    assert "<style" not in page
    assert page.count("<script") == page.count("<script src=") == 2


@pytest.mark.slow
def test_the_page_draws_the_same_description_in_the_version_that_is_quick_to_draw(http: Client) -> None:
    address = "/api/v1/docs/openapi.json"
    assert f'"{address}"' in http.get("/api/v1/docs?script=").content.decode()
    served = http.get(address)
    drawn = served.json()
    assert drawn["openapi"].startswith("3.0")
    validate_schema(drawn)
    # Making it changed nothing of the other one.
    described = http.get("/api/v1/openapi.json").json()
    assert described["openapi"].startswith("3.1")
    operations = [
        {
            (path, method): one["operationId"]
            for path, methods in each["paths"].items()
            for method, one in methods.items()
        }
        for each in (drawn, described)
    ]
    assert operations[0] == operations[1]
    assert drawn["components"]["schemas"].keys() == described["components"]["schemas"].keys()
    # No white space but in texts, unless it is asked for.
    assert len(served.content) < len(http.get(address, headers={"accept": "application/json; indent=4"}).content) / 2


def test_the_page_for_people_asks_for_a_log_in(db: None) -> None:
    assert Client().get("/api/v1/docs")["Location"].startswith("/login/")
