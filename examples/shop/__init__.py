"""A small shop: orders come in, one group bills them and one sends mail. What `make run` shows."""
