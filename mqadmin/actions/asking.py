"""Who asks, for previews and runs that depend on it: whose name a row keeps, who may not see a body.

The runner says it around every preview and every carrying out, so an action need not be given what few of them use.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from mqadmin.actions.caller import Caller

_asking: ContextVar[Caller] = ContextVar("asking")


@contextmanager
def asked_by(caller: Caller) -> Iterator[None]:
    """Makes the caller the one who asks, within the block."""
    token = _asking.set(caller)
    try:
        yield
    finally:
        _asking.reset(token)


def who_asks() -> Caller:
    """Returns the caller of the preview or run under way. Raises LookupError outside of one: a mistake of ours."""
    return _asking.get()
