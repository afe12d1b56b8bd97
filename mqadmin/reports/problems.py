"""Why a run failed, in one line: Spark's errors carry the stack of the JVM, and say what was wrong at its very end."""

from __future__ import annotations

import errno
import re

from django.conf import settings
from django.utils.translation import gettext as _

_CAUSE = re.compile(r"^(?:Caused by: |: )([\w.$]+(?:Exception|Error)\b.*)$", re.MULTILINE)
# What a disk says that takes no more: it is full, or a quota, or a limit on the size of files, is reached.
_FULL = ("No space left on device", "Disk quota exceeded", "File too large")
_FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def problem_of(error: BaseException) -> str:
    """Returns one line for the run's log, with the remedy where there is a common one."""
    text = str(error).strip()
    if any(words in text for words in _FULL) or (isinstance(error, OSError) and error.errno in _FULL_ERRNOS):
        words = _(
            "The disk with %(path)s is full, or a quota or limit of its user is reached: free some space, and make the "
            "report again."
        )
        return words % {"path": settings.MQADMIN_DATA}
    causes = _CAUSE.findall(text)
    first = causes[-1] if causes else text.splitlines()[0] if text else ""
    return first or type(error).__name__
