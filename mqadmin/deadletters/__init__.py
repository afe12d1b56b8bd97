"""Dead letters: the messages of `%DLQ%` topics, indexed as they arrive, grouped by failure."""
