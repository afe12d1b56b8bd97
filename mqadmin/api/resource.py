"""What all addresses of the API have in common: who asks, for which cluster, and whether the answer is still the same.

An ETag names the revision that pages know of (`live/revisions.py`), so an unchanged answer costs no query. It changes
at least once a minute, so that the moments that an answer says ("true until") never are older than that.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, ClassVar

from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.utils.cache import patch_cache_control, patch_vary_headers
from django.utils.http import parse_etags
from django.utils.translation import get_language
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from mqadmin.api.access import may, may_see
from mqadmin.live.events import live_group
from mqadmin.live.revisions import revision_of

# For so long an answer may be called unchanged; the moments in it are no older.
ETAG_KEPT_S = 60


class Resource(APIView):
    """An address. `cluster` and other names come with the path; a cluster that the caller may not see is not there."""

    # A refused change has its entry in the audit, which the runner writes.
    scope_is_left_to_the_runner: ClassVar[bool] = False
    # On the installation, of what is about no cluster; "": whoever is known may ask.
    permission: ClassVar[str] = ""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if not self.scope_is_left_to_the_runner and not may_see(request, kwargs.get("cluster", "")):
            raise Http404
        if self.permission and not may(request, self.permission):
            raise PermissionDenied
        # No name has this character, and PostgreSQL takes it in no text.
        if any("\0" in name for name in kwargs.values() if isinstance(name, str)):
            raise Http404

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        answer = super().finalize_response(request, response, *args, **kwargs)
        patch_vary_headers(answer, ["Accept", "Authorization", "Cookie", "Accept-Language"])
        patch_cache_control(answer, private=True, no_cache=True)
        return answer

    def live_groups(self, **names: str) -> Sequence[str]:
        """Returns the live groups whose changes change the answer; none where it has no ETag."""
        return [live_group(names["cluster"], names.get("group", ""))] if "cluster" in names else []

    def etag(self, request: Request, **names: str) -> str | None:
        """Returns the answer's ETag; None where no revision is known."""
        groups = self.live_groups(**names)
        revision = revision_of(groups) if groups else None
        if revision is None:
            return None
        parts = [
            revision,
            str(int(time.time()) // ETAG_KEPT_S),
            request.get_full_path(),
            request.accepted_renderer.media_type,
            get_language() or "",
            str(request.user.pk),
            str(getattr(request.auth, "pk", "")),
        ]
        return f'W/"{sha256(chr(10).join(parts).encode()).hexdigest()[:32]}"'

    def when_changed(self, request: Request, names: Mapping[str, str], answer: Callable[[], Response]) -> Response:
        """Returns 304 when the caller has the answer already, else the answer with its ETag."""
        # Asked before anything is read: what changes meanwhile makes another revision.
        etag = self.etag(request, **names)
        if etag is None:
            return answer()
        if etag in parse_etags(request.headers.get("If-None-Match", "")):
            return Response(status=status.HTTP_304_NOT_MODIFIED, headers={"ETag": etag})
        response = answer()
        response.headers["ETag"] = etag
        return response
