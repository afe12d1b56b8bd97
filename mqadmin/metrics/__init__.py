"""`/metrics`: what the console knows, as Prometheus reads it. Asks no broker; docs/OPERATING.md lists the series."""
