"""Where a small form that stands on many pages leads back to."""

from __future__ import annotations

from django.http import HttpRequest
from django.utils.http import url_has_allowed_host_and_scheme


def address_to_go_back_to(request: HttpRequest) -> str:
    """Returns the address on this console that a form gives as `next`; "" where it gives none, or one elsewhere."""
    address = request.POST.get("next", "")
    return address if url_has_allowed_host_and_scheme(address, allowed_hosts=None) else ""
