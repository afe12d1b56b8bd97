"""The console: a Django project and its apps, one folder per subject (docs/ARCHITECTURE.md, "The rooms")."""
