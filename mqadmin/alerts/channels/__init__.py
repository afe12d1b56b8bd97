"""How a message is written for each kind of channel: pure functions from a message to a request, or to a mail."""
