"""Scheduled jobs: any action at its time, under an identity with a role; on Celery and django-celery-beat.

Owns the one task that runs actions by name (`tasks.py`), reading jobs (`selectors.py`), and the actions that make,
pause and delete them. A job is a row of django-celery-beat whose task is ours; there is no second table.
"""
