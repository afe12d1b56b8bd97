"""Files of dead letters: what an export wrote, perhaps changed since, read back to be replayed."""
