#!/usr/bin/env python
"""Every command of the project: `manage.py help` lists them."""

from __future__ import annotations

import os
import signal
import sys


def main() -> int:
    if sys.argv[1:2] == ["up"]:
        # Until it listens for signals itself, Ctrl-C ends it at once: a KeyboardInterrupt among imports may get lost.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mqadmin.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
