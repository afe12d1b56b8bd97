"""Automatic rules: dead letters of a failure are replayed, archived, or raised on the overview, by themselves."""
