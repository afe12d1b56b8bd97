"""Addresses of the console. Each face has its own table."""

from __future__ import annotations

from django.urls import include, path

urlpatterns = [
    path("api/v1/", include("mqadmin.api.urls")),
    path("", include("mqadmin.console.urls")),
]
