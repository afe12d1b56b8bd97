"""The consumer runtime without Django: asyncio, threads for sync listeners, and pure rules."""
