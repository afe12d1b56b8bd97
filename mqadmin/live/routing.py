"""The websocket application of the web process: origin check, authentication, and the one address."""

from __future__ import annotations

from typing import Any

from channels.auth import AuthMiddlewareStack
from channels.routing import URLRouter
from channels.security.websocket import AllowedHostsOriginValidator
from django.urls import path

from mqadmin.live.heartbeats import HEARTBEAT_S, Heartbeats
from mqadmin.live.sockets import CHANGED_INTERVAL_S, SUBSCRIBE_WITHIN_S, LiveSocket

PATH = "ws/"


def live_application(
    *,
    heartbeat_s: float = HEARTBEAT_S,
    changed_interval_s: float = CHANGED_INTERVAL_S,
    subscribe_within_s: float = SUBSCRIBE_WITHIN_S,
) -> Any:
    """Returns the ASGI application for websockets, with a heartbeat loop of its own."""
    socket = LiveSocket.as_asgi(
        heartbeats=Heartbeats(heartbeat_s),
        changed_interval_s=changed_interval_s,
        subscribe_within_s=subscribe_within_s,
    )
    return AllowedHostsOriginValidator(AuthMiddlewareStack(URLRouter([path(PATH, socket)])))
