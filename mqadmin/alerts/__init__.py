"""Alerts: rules on what is observed, what fires now, and who is told of it by which channel."""
