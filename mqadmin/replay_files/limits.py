"""What a file may be. Each has a reason."""

from __future__ import annotations

from remoting.wire.limits import BODY_BYTES_MAX

# It is kept until it is replayed, and read while somebody waits.
FILE_BYTES_MAX = 256 * 1024 * 1024
# One ledger; read in about a minute.
LINES_MAX = 200_000
# The largest body, each byte escaped as six in JSON, and what stands beside it.
LINE_BYTES_MAX = 6 * BODY_BYTES_MAX + 1024 * 1024
# Of one cluster: as many as people work on; each may be of FILE_BYTES_MAX.
FILES_MAX = 20
# Then it goes, if no replay of it is under way.
KEPT_DAYS = 7
# Lines that are compared with the index and written together, and the bytes of their bodies.
CHUNK_LINES = 200
CHUNK_BYTES = 8 * 1024 * 1024
# What a spreadsheet cuts a longer cell to.
SPREADSHEET_CELL_CHARS = 32_767
