"""A Django app whose listener is declared wrong."""
