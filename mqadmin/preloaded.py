"""The program of `manage.py up`'s fork server: `python -m mqadmin.preloaded SOCKET` loads all of the console once.

Web process, workers, beat and the example's traffic load the same thousand modules: two seconds of processor time and
a hundred megabytes, each on its own. Forked from here they have them at once, and in memory once.
"""

from __future__ import annotations

import gc
import importlib
import os
import runpy
import sys
from pathlib import Path

from setproctitle import getproctitle, setproctitle

from mqadmin.garbage import look_less_often
from mqadmin.supervision.fork_server import serve_forks

# What the processes import when they start, beyond the apps and their tasks.
MODULES = (
    "mqadmin.answering_sockets",
    "mqadmin.asgi",
    "mqadmin.beat_process",
    "mqadmin.urls",
    "billiard.sharedctypes",
    "celery.app.routes",
    "celery.apps.worker",
    "celery.backends.base",
    "celery.bin.celery",
    "celery.concurrency.prefork",
    "celery.concurrency.thread",
    "celery.events.dispatcher",
    "celery.events.receiver",
    "celery.worker.components",
    "celery.worker.consumer",
    "channels_redis.serializers",
    "django.core.cache.utils",
    "django.core.management.commands.migrate",
    "django_celery_beat.schedulers",
    "kombu.transport.redis",
    "uvicorn.lifespan.off",
    "uvicorn.loops.auto",
    "uvicorn.protocols.http.auto",
)


def main() -> None:
    # Its first call looks where this process's words lie, before the first variable, and finds them only until that
    # variable is set anew: each forked process sets its own.
    getproctitle()
    _load()
    request = serve_forks(Path(sys.argv[1]))
    module, *words = request.arguments
    setproctitle(" ".join(("python", "-m", module, *words)))
    sys.argv = [module, *words]
    # As `python -m` does: what the module ends with is how this process ends.
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _load() -> None:
    look_less_often()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mqadmin.settings")
    import django  # after the variable
    from django.db import connections  # after the variable

    django.setup()
    from mqadmin.celery import app  # after the apps

    app.loader.import_default_modules()
    for module in MODULES:
        importlib.import_module(module)
    # An app may have asked the database as it was loaded; a connection belongs to one process.
    connections.close_all()
    # Collected here, no fork collects it again, and so copies the heads of all objects.
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    main()
