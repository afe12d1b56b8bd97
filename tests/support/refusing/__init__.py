"""A Django app whose one listener always fails; for MQADMIN_APPS of a process that a test starts."""

TOPIC = "refused-orders"
GROUP = "refusing"
# Two returns; the third failure makes the message a dead letter.
RETURNS_MAX = 2
