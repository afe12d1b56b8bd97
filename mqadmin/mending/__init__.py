"""Mending: a copy of a dead letter's body and properties is edited, and sent in its place; the original is kept."""
