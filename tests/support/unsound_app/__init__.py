"""An app that Django's checks refuse."""

from __future__ import annotations

from typing import Any

from django.core.checks import Error, register


@register()
def always_wrong(**_: Any) -> list[Error]:
    return [Error("this app is never right", hint="leave it out", id="unsound.E001")]
