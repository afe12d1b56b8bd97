"""Transactional messages: half messages, their commit or rollback, and the check-back of undecided ones."""
