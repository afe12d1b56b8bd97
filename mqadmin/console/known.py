"""An address that names something unknown is answered with 404."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.core.exceptions import ObjectDoesNotExist
from django.http import Http404


@contextmanager
def or_404() -> Iterator[None]:
    """Around a selector: what it doesn't find becomes the page that says so."""
    try:
        yield
    except ObjectDoesNotExist as error:
        raise Http404(str(error)) from error
