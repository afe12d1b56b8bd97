"""The web process: pages by Django, websockets by Channels, and what machines ask (`healthz.py`) before both.
A body is bounded before Django keeps it (`request_sizes.py`).

`/healthz` says that this process answers, nothing more: it touches neither database nor Redis, so a supervisor that
asks it never restarts the console for another part's fault.
"""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mqadmin.settings")
# Before anything that imports models.
pages = get_asgi_application()

from channels.routing import ProtocolTypeRouter  # noqa: E402

from mqadmin.healthz import before  # noqa: E402
from mqadmin.live.routing import live_application  # noqa: E402
from mqadmin.request_sizes import bounded  # noqa: E402

application = ProtocolTypeRouter({"http": before(bounded(pages)), "websocket": live_application()})
