"""The command line: `manage.py` in a checkout, `mqadmin` or `python -m mqadmin.command` where it is installed."""

from __future__ import annotations

import os
import signal
import sys

from mqadmin.garbage import look_less_often

# Commands of an app that use nothing of Django but its commands and settings. To load all apps takes three times as
# long as the rest of their start, and memory for as long as they run.
WITHOUT_APPS = {"runbroker": "broker", "store": "broker", "up": "mqadmin"}


def main() -> int:
    look_less_often()
    if sys.argv[1:2] == ["up"]:
        # As manage.py does.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mqadmin.settings")
    # After the signal: importing them takes a second.
    from django.core.exceptions import ImproperlyConfigured

    try:
        _execute(sys.argv)
    except ImproperlyConfigured as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _execute(arguments: list[str]) -> None:
    from logging.config import dictConfig  # after the signal, as the next two

    from django.conf import settings  # after the signal
    from django.core.management import execute_from_command_line, load_command_class  # after the signal

    name = arguments[1] if len(arguments) > 1 else ""
    if name not in WITHOUT_APPS:
        execute_from_command_line(arguments)
        return
    # Django's own way begins with its defaults: mails to admins, for which it loads views and models.
    dictConfig(settings.LOGGING)
    load_command_class(WITHOUT_APPS[name], name).run_from_argv(arguments)


if __name__ == "__main__":
    sys.exit(main())
