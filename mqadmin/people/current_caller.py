"""The caller of the preview or run under way, for actions that depend on it: whose name a row keeps, who sees a body.

The runner says it around every preview and every carrying out, so an action need not be given what few of them use.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from mqadmin.people.caller import Caller

_current: ContextVar[Caller] = ContextVar("current_caller")


@contextmanager
def acting_as(caller: Caller) -> Iterator[None]:
    """Makes `caller` the current one within the block."""
    token = _current.set(caller)
    try:
        yield
    finally:
        _current.reset(token)


def current_caller() -> Caller:
    """Returns the caller of the preview or run under way. Raises LookupError outside of one: a mistake of ours."""
    return _current.get()
