"""The message store: one commit log, and the indexes derived from it. `message_store.py` is its public interface."""
