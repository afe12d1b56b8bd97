"""The consumer runtime: a Django app around an engine (docs/ARCHITECTURE.md, "Rooms")."""
