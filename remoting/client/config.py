"""The times and limits of one client (RocketMQ's `ClientConfig`): connections, routes, heartbeats."""

from __future__ import annotations

from dataclasses import dataclass

from remoting.connection import WRITE_BUFFER_BYTES_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """RocketMQ's values where it has such a setting.

    `silent_s`: a request that times out closes its connection when nothing has come on it for so long.
    `idle_close_s`: below the servers' 120 s, so that no request meets a connection that its server is just closing.
    `handler_tasks_max`: async handlers of server requests that run at once; further requests get SYSTEM_BUSY.
    `write_buffer_bytes_max`: unsent bytes of one connection beyond which its senders wait.
    `unacknowledged_s`: a peer's machine that has acknowledged nothing for so long gets nothing more on the connection,
    nor what a process that died meanwhile had left for it; None: as the system has it, up to a quarter of an hour.
    `route_unused_s`: a route that was not used for so long is not refreshed any more.
    `route_expired_age_s`: the age from which an expired route, or one of a topic without a route, is requested again.
    `unregister_timeout_ms`: a broker that hangs must not delay a client that stops.
    """

    connect_timeout_ms: int = 3000
    silent_s: float = 3.0
    idle_close_s: float = 110.0
    idle_scan_interval_s: float = 10.0
    handler_tasks_max: int = 256
    write_buffer_bytes_max: int = WRITE_BUFFER_BYTES_MAX
    unacknowledged_s: float | None = None
    route_refresh_interval_s: float = 30.0
    route_unused_s: float = 600.0
    route_expired_age_s: float = 1.0
    heartbeat_first_after_s: float = 1.0
    heartbeat_interval_s: float = 30.0
    unregister_timeout_ms: int = 1000
