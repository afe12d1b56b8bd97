"""Consumer instances in Celery workers: leases, supervision, and the worker's own part."""
