"""Where messages go: producers, topics, the groups that read them, their retries and dead letters."""
