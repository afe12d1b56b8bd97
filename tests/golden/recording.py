"""A TCP proxy that keeps every frame which passes through it, with its direction."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from dataclasses import dataclass

from remoting.wire.command import Command
from remoting.wire.frames import LENGTH_BYTES, decode_frame


@dataclass(frozen=True, slots=True)
class Recorded:
    """One frame, length field included."""

    connection: int
    is_from_client: bool
    at_s: float
    frame: bytes

    def command(self) -> Command:
        return decode_frame(self.frame[LENGTH_BYTES:])


class RecordingProxy:
    """Listens on `listen` and passes all on to `target` (both (host, port)) until it is closed."""

    def __init__(self, listen: tuple[str, int], target: tuple[str, int]) -> None:
        self._target = target
        self._lock = threading.Lock()
        self._recorded: list[Recorded] = []
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(listen)
        self.address = "{}:{}".format(*self._listener.getsockname())
        threading.Thread(target=self._accept, daemon=True).start()

    def recorded(self) -> list[Recorded]:
        with self._lock:
            return list(self._recorded)

    def close(self) -> None:
        with self._lock:
            sockets = [self._listener, *self._sockets]
        for each in sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        connection = 0
        while True:
            try:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target)
            except OSError:
                return
            connection += 1
            with self._lock:
                self._sockets += [client, server]
            for source, sink, is_from_client in ((client, server, True), (server, client, False)):
                threading.Thread(
                    target=self._pump, args=(source, sink, connection, is_from_client), daemon=True
                ).start()

    def _pump(self, source: socket.socket, sink: socket.socket, connection: int, is_from_client: bool) -> None:
        kept = bytearray()
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                kept += data
                # Kept before it is passed on, so that a request always stands before its answer.
                self._keep_frames(kept, connection, is_from_client)
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    def _keep_frames(self, kept: bytearray, connection: int, is_from_client: bool) -> None:
        while len(kept) >= LENGTH_BYTES:
            end = LENGTH_BYTES + int.from_bytes(kept[:LENGTH_BYTES], "big")
            if len(kept) < end:
                return
            with self._lock:
                self._recorded.append(Recorded(connection, is_from_client, time.monotonic(), bytes(kept[:end])))
            del kept[:end]
