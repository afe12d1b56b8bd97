"""The broker: an engine, and the thin Django app that starts and schedules it (docs/ARCHITECTURE.md, "The rooms")."""
