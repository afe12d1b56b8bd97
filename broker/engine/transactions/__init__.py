"""Transactions: half messages, their ends, and asking producers that did not say."""
