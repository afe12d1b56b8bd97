"""The console: a Django project and its apps, one folder per subject (docs/ARCHITECTURE.md, "The rooms")."""

from mqadmin.celery import app as celery_app

__all__ = ["celery_app"]
