"""Addresses of the console. Each face has its own table."""

from __future__ import annotations

from django.urls import include, path

urlpatterns = [
    path("i18n/", include("django.conf.urls.i18n")),
    path("api/v1/", include("mqadmin.api.urls")),
    path("", include("mqadmin.console.urls")),
]
