"""A small shop for `make run`: it sends orders; one consumer group bills them, another one sends mail."""
