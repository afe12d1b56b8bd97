#!/usr/bin/env python
"""Every command of the project: `manage.py help` lists them."""

from __future__ import annotations

import signal
import sys

if __name__ == "__main__":
    if sys.argv[1:2] == ["up"]:
        # Until it listens for signals itself, Ctrl-C ends it at once: a KeyboardInterrupt among imports may get lost.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    # After the signal: importing the project takes a second.
    from mqadmin.command import main

    sys.exit(main())
