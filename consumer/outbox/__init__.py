"""Messages written in the caller's own database transaction, and sent by Celery after it was committed."""
