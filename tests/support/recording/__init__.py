"""A Django app whose listeners write down when and where they have consumed which message."""
