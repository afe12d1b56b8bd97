"""Retries: messages that failed and wait for their next attempt, read where brokers keep them until then."""
