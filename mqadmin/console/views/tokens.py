"""`/tokens/`: the viewer's own API tokens; they are made and revoked by actions."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.cache import add_never_cache_headers
from django.views.decorators.http import require_safe

from mqadmin.people.roles import Role
from mqadmin.people.words import ROLE_WORDS
from mqadmin.tokens.selectors import tokens_of


@require_safe
def tokens(request: HttpRequest) -> HttpResponse:
    # Whose token it is stands in the address: actions ask nobody who is looking at their page.
    whose = urlencode({"person": request.user.get_username()})
    context = {
        "now": timezone.now(),
        "section": "tokens",
        "rows": [
            (token, ROLE_WORDS[Role(token.role)], f"{reverse('revoke_token', args=[token.name])}?{whose}")
            for token in tokens_of(request.user)
        ],
        "create_url": f"{reverse('create_token')}?{whose}",
    }
    response = render(request, "console/tokens.html", context)
    add_never_cache_headers(response)
    return response
