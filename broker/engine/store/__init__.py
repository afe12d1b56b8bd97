"""The message store: one commit log, and the indexes that are derived from it. `message_store.py` is the door."""
