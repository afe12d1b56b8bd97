from __future__ import annotations

from django.apps import AppConfig


class ShopConfig(AppConfig):
    name = "examples.shop"
    label = "shop"
