"""The websocket application of the web process: pages' sockets with origin check and session, scripts' with a token.

Browsers send a session with every request, so a page's socket must come from a page of this console. They send no token
by themselves, and scripts have no origin.
"""

from __future__ import annotations

from typing import Any

from channels.auth import AuthMiddlewareStack
from channels.routing import URLRouter
from channels.security.websocket import AllowedHostsOriginValidator
from django.urls import path, re_path

from mqadmin.live.bounded_sockets import SEND_WITHIN_S, SUBSCRIBE_WITHIN_S
from mqadmin.live.changes import ChangeListener
from mqadmin.live.event_feed import EventFeed
from mqadmin.live.event_sockets import EventSocket
from mqadmin.live.heartbeats import HEARTBEAT_S, Heartbeats
from mqadmin.live.pushes import JUDGED_FOR_S, PUSH_INTERVAL_S, Pushes
from mqadmin.live.sockets import CHANGED_INTERVAL_S, LiveSocket

PATH = "ws/"
EVENTS_PATH = "ws/events"


def live_application(
    *,
    heartbeat_s: float = HEARTBEAT_S,
    changed_interval_s: float = CHANGED_INTERVAL_S,
    push_interval_s: float = PUSH_INTERVAL_S,
    judged_for_s: float = JUDGED_FOR_S,
    subscribe_within_s: float = SUBSCRIBE_WITHIN_S,
    send_within_s: float = SEND_WITHIN_S,
    feed: EventFeed | None = None,
) -> Any:
    """Returns the ASGI application for websockets, with its own heartbeat, listener, pushes and feed of events."""
    socket = LiveSocket.as_asgi(
        heartbeats=Heartbeats(heartbeat_s),
        changes=ChangeListener(),
        pushes=Pushes(interval_s=push_interval_s, judged_for_s=judged_for_s),
        changed_interval_s=changed_interval_s,
        send_within_s=send_within_s,
        subscribe_within_s=subscribe_within_s,
    )
    events = EventSocket.as_asgi(
        feed=feed or EventFeed(heartbeat_s), subscribe_within_s=subscribe_within_s, send_within_s=send_within_s
    )
    pages = AllowedHostsOriginValidator(AuthMiddlewareStack(URLRouter([path(PATH, socket)])))
    return URLRouter([path(EVENTS_PATH, events), re_path("", pages)])
