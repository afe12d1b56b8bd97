"""Writes a listener's failures to the log, one line each, without a flood of tracebacks."""

from __future__ import annotations

import logging

from consumer.engine.listener_call import ListenerCall
from consumer.engine.outcomes import Later, NotDecoded
from remoting.wire.error_text import error_text

logger = logging.getLogger(__name__)

# Kinds of errors whose first traceback is logged; those of further kinds are logged at debug level only.
TRACEBACKS_MAX = 100


class FailureLog:
    def __init__(self, group: str) -> None:
        self._group = group
        # Errors whose traceback was logged: topic, class, line.
        self._logged_errors: set[tuple[str, type[BaseException], int]] = set()

    def log(self, call: ListenerCall, error: BaseException) -> None:
        """Writes one line per failed call, with the traceback at the first of its kind (always, at debug level).

        NotDecoded has none: its text is the whole reason, and where it was raised is ours. Nor has an exception that
        the listener's declaration names: it is expected.
        """
        if isinstance(error, Later):
            logger.info("group %s: %s comes back later: %s", self._group, call, error_text(error))
            return
        kind = (call.first.stored.topic, type(error), _line_of(error))
        is_new = kind not in self._logged_errors and len(self._logged_errors) < TRACEBACKS_MAX
        is_expected = call.listener is not None and call.listener.failures.names(error)
        has_traceback = not (is_expected or isinstance(error, NotDecoded)) and (
            is_new or logger.isEnabledFor(logging.DEBUG)
        )
        logger.warning(
            "group %s: listener failed on %s: %s: %s",
            self._group,
            call,
            type(error).__name__,
            error_text(error),
            exc_info=error if has_traceback else None,
        )
        if is_new:
            self._logged_errors.add(kind)


def _line_of(error: BaseException) -> int:
    """Returns the line that raised it: the same error from two places is two kinds."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_lineno if trace is not None else 0
