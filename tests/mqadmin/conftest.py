"""For every test of the console: live events and the cache stay in this process unless a test wants Redis."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from channels.layers import channel_layers
from django.contrib.auth.models import AbstractUser
from django.core.cache import cache
from django.utils import translation


@pytest.fixture(autouse=True)
def memory_layer(settings: Any) -> Iterator[None]:
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    channel_layers.backends.clear()
    yield
    cache.clear()
    channel_layers.backends.clear()


@pytest.fixture(autouse=True)
def english_again() -> Iterator[None]:
    """A request leaves its language to the thread, which in a test goes on to the next one."""
    yield
    translation.deactivate()


@pytest.fixture(autouse=True)
def quick_passwords(settings: Any) -> None:
    """Replaces PBKDF2, which takes a third of a second on purpose."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def ann(db: None, django_user_model: type[AbstractUser]) -> AbstractUser:
    """Somebody who may do everything."""
    return django_user_model.objects.create_superuser("ann")
