"""Addresses of the websockets: a page's own address below `/ws/`."""

from __future__ import annotations

from django.urls import path

from mqadmin.live.sockets import LiveSocket

websocket_urlpatterns = [
    path("ws/clusters/<slug:cluster>/", LiveSocket.as_asgi()),
    path("ws/clusters/<slug:cluster>/groups/<path:group>/", LiveSocket.as_asgi()),
]
