"""The addresses of `/api/v1/`, a file per subject."""
