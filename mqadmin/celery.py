"""The Celery application: `celery -A mqadmin worker …` and `celery -A mqadmin beat` start here."""

from __future__ import annotations

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mqadmin.settings")

app = Celery("mqadmin")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
