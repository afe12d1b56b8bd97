"""Websockets that tell open pages what changed."""
