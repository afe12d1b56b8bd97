"""The command line that asks the REST API for what a page is about to do."""

from __future__ import annotations

import json
from shlex import quote
from typing import Any

from django.http import HttpRequest
from django.urls import reverse


def curl_command(
    request: HttpRequest, action: str, cluster: str, arguments: dict[str, Any], *, confirmation: str = ""
) -> str:
    """Returns the command for a POSIX shell, with the token in $MQADMIN_TOKEN and a new key each time."""
    path = reverse("api:run_on_cluster", args=[cluster, action]) if cluster else reverse("api:run", args=[action])
    body = {"arguments": arguments} | ({"confirmation": confirmation} if confirmation else {})
    parts = (
        "curl --fail-with-body",
        '-H "Authorization: Bearer $MQADMIN_TOKEN"',
        '-H "Idempotency-Key: $(uuidgen)"',
        "-H 'Content-Type: application/json'",
        f"--data {quote(json.dumps(body))}",
        quote(request.build_absolute_uri(path)),
    )
    return " \\\n  ".join(parts)
