"""The command line: `manage.py` in a checkout, `mqadmin` where the package is installed."""

from __future__ import annotations

import os
import signal
import sys


def main() -> int:
    if sys.argv[1:2] == ["up"]:
        # As manage.py does.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mqadmin.settings")
    # After the signal: importing them takes a second.
    from django.core.exceptions import ImproperlyConfigured

    # As above.
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0
