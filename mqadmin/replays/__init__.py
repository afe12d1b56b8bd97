"""Replays: dead letters sent again as a job, with one outcome per message."""
