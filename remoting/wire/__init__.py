"""The pure core of the protocol: bytes to values and back. No socket, no clock, no file."""
