"""The cluster of the pages' tests, and clients that ask the API."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import AbstractUser
from django.test import AsyncClient, Client
from django.utils import timezone

from mqadmin.clusters.models import Cluster
from mqadmin.tokens.models import ApiToken, digest_of, new_secret
from tests.mqadmin.action_runs.conftest import house  # noqa: F401 - a fixture
from tests.support import console_rows
from tests.support.people import give_session


@pytest.fixture
def now() -> datetime:
    return timezone.now()


@pytest.fixture
def http(ann: AbstractUser) -> Client:
    client = Client()
    give_session(client, ann)
    return client


@pytest.fixture
def async_http(ann: AbstractUser) -> AsyncClient:
    client = AsyncClient()
    give_session(client, ann)
    return client


@pytest.fixture
def cluster(db: None, now: datetime) -> Cluster:
    cluster = console_rows.make_cluster("local", now=now)
    console_rows.make_broker(cluster, now=now)
    return cluster


@pytest.fixture
def token_of(cluster: Cluster) -> Callable[..., Client]:
    """Makes clients that show a token of a person: its role, and the clusters that it is for."""

    def make(person: AbstractUser, role: str = "admin", clusters: Sequence[str] = (), **changes: Any) -> Client:
        secret = new_secret()
        fields = {"name": secret[-8:], "expires_at": timezone.now() + timedelta(days=1)} | changes
        ApiToken.objects.create(person=person, digest=digest_of(secret), role=role, clusters=list(clusters), **fields)
        return Client(headers={"Authorization": f"Bearer {secret}"})

    return make
